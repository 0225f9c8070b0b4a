"""The control plane in one process: the services' own parts over the adapters in memory."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, cast

import grpc

from atoll.adapters.memory.election import MemoryElection, MemoryElections
from atoll.adapters.memory.registry import MemoryRegistration, MemoryRegistry
from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.adapters.memory.streams import MemoryDecisionStream, MemoryHints
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import DEFAULT_SHARD
from atoll.core.policies.interfaces import Policies
from atoll.dispatch.loops import Pace
from atoll.dispatch.replica import Replica
from atoll.dispatch.settings import DispatchSettings
from atoll.placement.loops import Candidate
from atoll.placement.publish import Publisher
from atoll.placement.servicer import PlacementServicer
from atoll.placement.settings import PlacementSettings
from atoll.placement.usecases.leader import Leader
from atoll.ports.clock import Clock, Ids
from atoll.ports.store.upkeep import Retention
from atoll.runtime.loops import Backoff, Supervisor
from atoll.sim.service.link import Exchange
from atoll.sim.service.unary import UnaryChannel
from atoll.submission.agent_logs import DispatchLogs
from atoll.submission.loops import Keeper
from atoll.submission.placement_desk import PlacementDesk
from atoll.submission.wiring import Submission

ELECTION: Final = "placement"
PACE: Final = Pace(read_wait_s=10.0, idle_s=2.0, look_s=5.0)
"""Slower than in real life where nothing happens: each look costs as much as in real life."""
ONLY_METRICS: Final = frozenset({"gauges"})
MOST_QUEUED: Final = 1_000_000
OnMishap = Callable[[str, Exception], None]
Loop = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PlaneSettings:
    """How the services are told to be."""

    placement: PlacementSettings
    dispatch: DispatchSettings
    policies: Policies
    placement_replicas: int = 2
    dispatch_replicas: int = 2


@dataclass(slots=True, eq=False)
class PlacementReplica:
    """A candidate and its loops."""

    identity: str
    candidate: Candidate
    supervisor: Supervisor
    registration: MemoryRegistration


@dataclass(slots=True, eq=False)
class DispatchReplica:
    """A dispatch replica and its loops."""

    address: str
    replica: Replica
    supervisor: Supervisor
    registration: MemoryRegistration


class Plane:
    """Every service, and what stands behind their ports."""

    def __init__(
        self, settings: PlaneSettings, *, clock: Clock, ids: Ids, on_mishap: OnMishap
    ) -> None:
        self.settings = settings
        self.database = MemoryDatabase()
        self.elections = MemoryElections(clock)
        self.registry = MemoryRegistry()
        self.stream = MemoryDecisionStream(clock)
        self.hints = MemoryHints()
        self.exchange = Exchange(on_mishap)
        self.placement: list[PlacementReplica] = []
        self.dispatch: list[DispatchReplica] = []
        self._clock = clock
        self._ids = ids
        self._on_mishap = on_mishap
        self._numbers = count(1)
        self._supervisor = Supervisor(clock, ids)
        store = MemoryStore(self.database, clock)
        self._desk = PlacementDesk(self.registry, self._dial_placement)
        self._submission = Submission(
            store.submission,
            hints=self.hints,
            source=DispatchLogs(lambda address: _unreached()),
            desk=self._desk,
            clock=clock,
            ids=ids,
            max_queued_jobs=MOST_QUEUED,
        )
        self.use = self._submission.use_cases
        self._keeper = Keeper(store.upkeep, Retention(), clock=clock, ids=ids)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where agents find dispatch, whether or not somebody is there just now."""
        return tuple(f"dispatch-{n}" for n in range(self.settings.dispatch_replicas))

    @property
    def leader(self) -> Leader | None:
        """The present leader, as far as one believes to be it."""
        leaders = [replica.candidate.leader for replica in self.placement]
        return next((leader for leader in leaders if leader is not None), None)

    @property
    def terms(self) -> int:
        """How often somebody began to lead."""
        return self.database.tables.shards[DEFAULT_SHARD].epoch.revision

    async def start(self) -> None:
        """Start all replicas and what submission does unasked."""
        self._run(self._supervisor, "maintain", self._keeper.maintain)
        for address in self.addresses:
            await self.start_dispatch(address)
        for _ in range(self.settings.placement_replicas):
            await self.start_placement()

    async def close(self) -> None:
        """End everything."""
        for replica in list(self.placement):
            await self.kill_placement(replica)
        for served in list(self.dispatch):
            await self.kill_dispatch(served)
        await self._supervisor.close()
        await self._desk.close()
        await self._submission.close()

    def leading(self) -> PlacementReplica | None:
        """The replica that leads."""
        found = (each for each in self.placement if each.candidate.leader is not None)
        return next(found, None)

    async def start_placement(self) -> PlacementReplica:
        """A new replica, as a new process."""
        identity = f"placement-{next(self._numbers)}"
        publisher = Publisher(self.stream, self.hints)
        candidate = Candidate(
            settings=self.settings.placement,
            store=MemoryStore(self.database, self._clock).placement,
            registry=self.registry,
            hints=self.hints,
            publisher=publisher,
            policies=self.settings.policies,
            clock=self._clock,
        )
        election = MemoryElection(
            self.elections,
            prefix=ELECTION,
            identity=identity,
            ttl_s=self.settings.placement.election_ttl_s,
        )
        registration = await self.registry.register(
            "placement",
            identity,
            address=identity,
            ttl_s=self.settings.placement.registry_ttl_s,
        )
        supervisor = Supervisor(self._clock, self._ids)
        replica = PlacementReplica(identity, candidate, supervisor, registration)
        self._run(replica.supervisor, "publish", publisher.run)
        self._run(replica.supervisor, "hints", candidate.watch_hints)
        self._run(replica.supervisor, "election", lambda: candidate.stand(election))
        self.placement.append(replica)
        return replica

    async def kill_placement(self, replica: PlacementReplica) -> None:
        """End a replica as SIGKILL does: its lease runs out by itself."""
        self.placement.remove(replica)
        self.elections.cut(replica.identity)
        await replica.supervisor.close()
        await replica.registration.close()

    async def start_dispatch(self, address: str) -> DispatchReplica:
        """A new replica at an address."""
        replica = Replica(
            MemoryStore(self.database, self._clock).dispatch,
            self.stream,
            self.hints,
            settings=self.settings.dispatch,
            holder=lambda: address,
            clock=self._clock,
            ids=self._ids,
            pace=PACE,
        )
        supervisor = Supervisor(self._clock, self._ids)
        for name, loop in replica.loops().items():
            if name not in ONLY_METRICS:
                self._run(supervisor, name, loop)
        registration = await self.registry.register(
            "dispatch", address, address=address, ttl_s=self.settings.dispatch.registry_ttl_s
        )
        self.exchange.serve(address, replica.servicer)
        served = DispatchReplica(address, replica, supervisor, registration)
        self.dispatch.append(served)
        return served

    async def kill_dispatch(self, served: DispatchReplica) -> None:
        """End a replica as SIGKILL does."""
        self.dispatch.remove(served)
        self.exchange.withdraw(served.address)
        await served.supervisor.close()
        await served.registration.close()

    def _dial_placement(self, address: str) -> grpc.aio.Channel:
        """As submission dials the leader's API."""
        found = (each for each in self.placement if each.identity == address)
        replica = next(found, None)
        servicer = None if replica is None else PlacementServicer(replica.candidate)
        return cast("grpc.aio.Channel", UnaryChannel(servicer))

    def _run(self, supervisor: Supervisor, name: str, loop: Loop) -> None:
        """Supervise a loop; an error that is not the domain's is a mistake of ours."""

        async def watched() -> None:
            try:
                await loop()
            except DomainError:
                raise
            except Exception as error:
                self._on_mishap(name, error)
                raise

        _ = supervisor.start(name, watched, backoff=Backoff(first_s=0.05, most_s=2.0))


def _unreached() -> grpc.aio.Channel:
    raise AssertionError("nobody reads logs in a simulation")
