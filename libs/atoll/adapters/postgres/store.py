"""The store over PostgreSQL: each role's side of one database."""

from dataclasses import dataclass

from atoll.adapters.postgres.burst import PostgresBurstStore
from atoll.adapters.postgres.database import Database, PoolSize
from atoll.adapters.postgres.dispatch import PostgresDispatchStore
from atoll.adapters.postgres.placement import PostgresPlacementStore
from atoll.adapters.postgres.reservation import PostgresReservationStore
from atoll.adapters.postgres.submission import PostgresSubmissionStore
from atoll.adapters.postgres.upkeep import Upkeep
from atoll.ports.clock import Ids


@dataclass(frozen=True, slots=True)
class PostgresStore:
    """One process's way to the database."""

    submission: PostgresSubmissionStore
    placement: PostgresPlacementStore
    dispatch: PostgresDispatchStore
    reservation: PostgresReservationStore
    burst: PostgresBurstStore
    upkeep: Upkeep
    _database: Database

    @classmethod
    def open(
        cls,
        dsn: str,
        *,
        ids: Ids,
        pool_size: int = 8,
        wait_s: float = 5.0,
        application: str = "atoll",
    ) -> "PostgresStore":
        """Of `postgresql://…`. Connections, `pool_size` at most, are made when they are needed.

        Whoever waits longer than `wait_s` for one gets Exhausted.
        """
        size = PoolSize(pool_size, wait_s=wait_s)
        database = Database(dsn, size=size, application=application)
        return cls(
            submission=PostgresSubmissionStore(database),
            placement=PostgresPlacementStore(database, ids.uuid()),
            dispatch=PostgresDispatchStore(database),
            reservation=PostgresReservationStore(database, ids.uuid()),
            burst=PostgresBurstStore(database),
            upkeep=Upkeep(database),
            _database=database,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._database.close()
