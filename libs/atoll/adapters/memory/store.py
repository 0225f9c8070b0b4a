"""The store in memory: each role's side of one database, with the rules of the real one."""

from atoll.adapters.memory.store_burst import MemoryBurstStore
from atoll.adapters.memory.store_dispatch import MemoryDispatchStore
from atoll.adapters.memory.store_placement import MemoryPlacementStore
from atoll.adapters.memory.store_reservation import MemoryReservationStore
from atoll.adapters.memory.store_rows import MemoryDatabase as MemoryDatabase
from atoll.adapters.memory.store_submission import MemorySubmissionStore
from atoll.adapters.memory.store_upkeep import MemoryUpkeep
from atoll.ports.clock import Clock


class MemoryStore:
    """One process's way to a database, which several may share."""

    def __init__(self, database: MemoryDatabase, clock: Clock) -> None:
        self.submission = MemorySubmissionStore(database, clock)
        self.placement = MemoryPlacementStore(database, clock)
        self.dispatch = MemoryDispatchStore(database, clock)
        self.reservation = MemoryReservationStore(database, clock)
        self.burst = MemoryBurstStore(database, clock)
        self.upkeep = MemoryUpkeep(database, clock)

    async def close(self) -> None:
        """Nothing is open."""
