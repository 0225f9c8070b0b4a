"""The reservation service over a store, and a federation of small clusters in it."""

from collections.abc import Sequence
from itertools import count

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.adapters.memory.streams import MemoryHints
from atoll.adapters.postgres.store import PostgresStore
from atoll.adapters.system import SystemClock, SystemIds
from atoll.core.model.actor import Actor
from atoll.core.model.booking import Owners
from atoll.core.model.ids import Epoch, NodeId, QueueName, Tenant
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.reservation import (
    Amount,
    Occurrence,
    ReservationId,
    ReservationSpec,
    What,
    When,
)
from atoll.core.model.resources import DeviceRequest
from atoll.ports.clock import Clock
from atoll.ports.store.bookings import BookingRecord
from atoll.ports.store.dispatch import InventoryDelta
from atoll.reservation.settings import ReservationSettings
from atoll.reservation.usecases.create import Draft, Made, shown
from atoll.reservation.usecases.keeper import Term
from atoll.reservation.wiring import Bookings
from tests.adapters.store_builders import NORTH, cluster_with, node, node_ids
from tests.adapters.store_worlds import Store

TENANT = Tenant("default")
ANN = Actor("ann", TENANT)
OWNERS = Owners(queues=(QueueName("default"),))
HOUR = 3600.0


class World:
    """One replica; `another` gives one more over the same store."""

    def __init__(self, store: Store, clock: Clock, *, leader: Store | None = None) -> None:
        self.store = store
        self.leader = leader or store
        """The store as placement's leader has it: what it writes the service has to be told."""
        self.clock = clock
        self.ids = SystemIds()
        self.hints = MemoryHints()
        self.settings = ReservationSettings()
        self.service = self.another()
        self.use = self.service.use_cases
        self._epochs = count(1)
        self._numbers = count(2)

    def another(self) -> Bookings:
        """One more replica."""
        return Bookings(
            self.store.reservation,
            self.store.placement,
            hints=self.hints,
            settings=self.settings,
            clock=self.clock,
            ids=self.ids,
        )

    async def cluster(self, *names: str, gpus: int = 8) -> None:
        """The cluster `north` with nodes in racks of two."""
        domains = {name: (("rack", f"r{at // 2}"),) for at, name in enumerate(names)}
        await cluster_with(
            self.store, *(node(name, gpus=gpus, domains=domains[name]) for name in names)
        )

    async def inventory(self, *nodes: NodeInventory) -> None:
        """What the agent of `north` lists from now on."""
        rows = await self.store.submission.clusters()
        delta = InventoryDelta(
            NORTH, rows[0].session_epoch, next(self._numbers), full=True, nodes=nodes
        )
        assert await self.store.dispatch.put_inventory(delta)

    async def book(self, spec: ReservationSpec, *, actor: Actor = ANN, key: str = "") -> Made:
        """A booking."""
        return await self.use.booker.create(actor, Draft(spec, key=key, body_hash=b"1"))

    async def shown(self, made: Made) -> Made:
        """A booking as it stands."""
        return await shown(self.service.ground, ANN, made.reservation.id)

    async def nodes(self) -> dict[NodeId, str]:
        """Names of nodes."""
        return {number: name for name, number in (await node_ids(self.store)).items()}

    async def term(self, service: Bookings | None = None) -> Term:
        """A new term of the loop."""
        ground = (service or self.service).ground
        fence = await self.store.reservation.take_over(Epoch(1, next(self._epochs)))
        await ground.replica.follow()
        return Term(ground, fence, self.settings.horizon_s)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass: at once where that can be told."""
        if isinstance(self.clock, ManualClock):
            await self.clock.advance(seconds)
        else:
            await self.clock.sleep(seconds)

    async def look(self, term: Term) -> list[str]:
        """One look of the loop; what it did."""
        await term.ground.replica.follow()
        done = [*await term.act(), *await term.mend()]
        return [each.event.value for each in done]

    async def events(self, of: ReservationId) -> list[BookingRecord]:
        """What happened to a booking, from the beginning."""
        page = await self.store.reservation.events_after(
            self._beginning, tenant=TENANT, reservation=of
        )
        return list(page.events)

    async def begin(self) -> None:
        """Events count from here on."""
        self._beginning = await self.store.reservation.events_now()


def memory_world() -> World:
    """Time passes when it is told to."""
    clock, database = ManualClock(), MemoryDatabase()
    return World(MemoryStore(database, clock), clock, leader=MemoryStore(database, clock))


def postgres_world(dsn: str) -> World:
    """Time passes by itself."""
    store = PostgresStore.open(dsn, ids=SystemIds(), pool_size=12)
    return World(store, SystemClock())


def spec(
    name: str,
    start: float,
    *,
    gpus: int = 8,
    units: int = 1,
    length_s: float = HOUR,
    **given: object,
) -> ReservationSpec:
    """Whole nodes' worth of devices."""
    when = given.pop("when", None) or When(length_s=length_s, start_at=start)
    what = given.pop("what", None) or What(amounts=(Amount(DeviceRequest("H100", gpus), units),))
    assert isinstance(when, When)
    assert isinstance(what, What)
    fields: dict[str, object] = {"owners": OWNERS, **given}
    return ReservationSpec(name, what, when, **fields)  # type: ignore[arg-type]


def places(occurrences: Sequence[Occurrence]) -> list[set[str]]:
    """Names of the nodes of each."""
    return [{s.node_name for part in each.parts for s in part.shares} for each in occurrences]
