"""The burst service in memory, over a cloud that is only thought of."""

import hashlib
from collections.abc import Mapping
from itertools import count

from pydantic import SecretStr

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.adapters.memory.streams import MemoryHints
from atoll.adapters.system import SystemIds
from atoll.burst.providers.simcloud import Machine, MachineType, State, Zone
from atoll.burst.providers.simulated import SimulatedProvider, SimulatedSettings
from atoll.burst.settings import BurstSettings
from atoll.burst.usecases.books import join_token
from atoll.burst.usecases.deciding import Decider
from atoll.burst.usecases.desk import Desk
from atoll.burst.usecases.follower import Follower
from atoll.burst.usecases.foresight import Foresight
from atoll.burst.usecases.lives import Lives
from atoll.burst.usecases.reaper import reap
from atoll.burst.usecases.term import Term
from atoll.burst.usecases.upkeep import Upkeep
from atoll.burst.wiring import Broker
from atoll.core.model.burst import (
    MICROS,
    Budget,
    BurstPolicy,
    Instance,
    InstanceId,
)
from atoll.core.model.burst_wants import Ask, Want
from atoll.core.model.ids import DEFAULT_SHARD, Epoch, JobId, QueueName
from atoll.ports.provider import Provider
from atoll.ports.store.dispatch import InventoryDelta
from tests.adapters.store_builders import claim, lead, node

NLP = QueueName("nlp")
DOLLAR = MICROS
SECRET = "a secret of tests"
TYPES: Mapping[str, MachineType] = {
    "small": MachineType(cpu=16, memory_gib=64, kind="H100", devices=1, spot=None),
    "big": MachineType(cpu=64, memory_gib=256, kind="H100", devices=4, on_demand=3.5, spot=None),
}
SMALL = "cloud/a/small/on_demand"


class World:
    """A store, clouds by name, and replicas of the service."""

    def __init__(self, *clouds: str, **given: object) -> None:
        self.clock = ManualClock()
        self.database = MemoryDatabase()
        self.store = MemoryStore(self.database, self.clock)
        self.hints = MemoryHints()
        self.ids = SystemIds()
        self.states = {name: State() for name in clouds or ("cloud",)}
        self.clouds = {name: self.provider(name) for name in self.states}
        self.settings = BurstSettings(
            providers={name: {} for name in self.clouds},
            join_secret=SecretStr(SECRET),
            **given,  # type: ignore[arg-type]
        )
        self.service = self.another()
        self.use = self.service.use_cases
        self._epochs = count(1)

    def another(self) -> Broker:
        """One more replica."""
        providers: dict[str, Provider] = dict(self.clouds)

        async def who_leads() -> str | None:
            return "here:1"

        return Broker(
            self.store.burst,
            providers,
            hints=self.hints,
            settings=self.settings,
            clock=self.clock,
            ids=self.ids,
            who_leads=who_leads,
        )

    def provider(self, name: str) -> SimulatedProvider:
        """Two zones, two types, a boot of a minute."""
        settings = SimulatedSettings(types=TYPES, zones={"a": Zone(), "b": Zone()})
        return SimulatedProvider(name, settings, self.clock, state=self.states[name])

    async def lead(self) -> "Leader":
        """A new term of the loop, with its first look at offers."""
        epoch = Epoch(1, next(self._epochs))
        fence = await self.store.burst.take_over(epoch)
        desks = {name: Desk(cloud, self.clock) for name, cloud in self.clouds.items()}
        term = Term(self.another().books, fence, desks)
        await term.begin()
        leader = Leader(self, term)
        await leader.offers()
        return leader

    async def allow(self, queue: QueueName | None = None, **given: object) -> BurstPolicy:
        """A policy that allows renting; `per_hour` and `per_month` in dollars."""
        hour, month = given.pop("per_hour", None), given.pop("per_month", None)
        budget = Budget(_micros(hour), _micros(month))
        fields: dict[str, object] = {"allowed": True, "generation": 0, **given}
        wanted = BurstPolicy(queue, budget=budget, **fields)  # type: ignore[arg-type]
        return await self.use.policies.set(wanted, ())

    async def want(self, *jobs: int, **given: object) -> None:
        """Jobs that wait for ten hours, and for which a device is worth $10 an hour."""
        fence = await lead(self.store, Epoch(1, next(self._epochs)))
        now = self.clock.now()
        fields: dict[str, object] = {
            "queue": NLP,
            "asks": (Ask("H100", 100, 1000, 1 << 30),),
            "submitted_at": now,
            "work_s": 3600.0,
            "local_p50_at": now + 36_000,
            "local_p90_at": now + 72_000,
            "as_of": now,
            **given,
        }
        async with self.store.placement.begin() as tx:
            await tx.require(fence)
            wants = [Want(JobId(job), **fields) for job in jobs]  # type: ignore[arg-type]
            await tx.put_wants(DEFAULT_SHARD, wants)

    async def join(self, row: Instance, **given: object) -> None:
        """The agent of an instance opens its session, and lists its node."""
        word = join_token(SECRET.encode(), row.token)
        told = hashlib.sha256(word.encode()).digest()
        asked = claim(row.cluster, join_hash=told, **given)
        session = await self.store.dispatch.open_session(asked)
        epoch = session.cluster.session_epoch
        here = node(row.cluster, gpus=row.offer.devices)
        delta = InventoryDelta(row.cluster, epoch, 1, full=True, nodes=(here,))
        assert await self.store.dispatch.put_inventory(delta)

    async def row(self, number: int = 1) -> Instance:
        """An instance as it is."""
        return (await self.store.burst.instances([InstanceId(number)]))[InstanceId(number)]

    def machines(self, cloud: str = "cloud") -> list[Machine]:
        """What the cloud has, ended ones too."""
        return list(self.states[cloud].machines.values())


class Leader:
    """One term, step by step."""

    def __init__(self, world: World, term: Term) -> None:
        self.world = world
        self.term = term
        self.lives = {name: Lives(term, desk, name.__eq__) for name, desk in term.desks.items()}
        self.upkeep = Upkeep(term, keep_s=3600)
        self.foresight = Foresight(term, Follower(28 * 86_400.0))
        self.decider = Decider(term, self.foresight)

    async def offers(self) -> None:
        """Look at what is offered."""
        for desk in self.term.desks.values():
            await self.upkeep.refresh_offers(desk)

    async def live(self, seconds: float = 0.0) -> list[str]:
        """Let time pass, and look at all instances; what happened."""
        await self.world.clock.advance(seconds)
        done = [each for lives in self.lives.values() for each in await lives.look()]
        return [each.what for each in done if each.what != "wait"]

    async def decide(self) -> list[str]:
        """One decision; what came of it."""
        return [each.what for each in await self.decider.look()]

    async def reap(self) -> list[str]:
        """Look for machines without a row; tokens of those that were told to end."""
        found = [each for desk in self.term.desks.values() for each in await reap(self.term, desk)]
        return [each.token for each in found]


async def ready(world: World, leader: Leader, number: int = 1) -> Instance:
    """Carry an instance that was asked for to READY."""
    assert await leader.live() == ["booting"]
    await world.clock.advance(60)
    await world.join(await world.row(number))
    assert await leader.live() == ["ready"]
    return await world.row(number)


def _micros(dollars: object) -> int | None:
    assert dollars is None or isinstance(dollars, int | float)
    return None if dollars is None else round(dollars * DOLLAR)
