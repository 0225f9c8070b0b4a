"""The loops: one leader, a standby, and nobody held up by a provider that is away."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from atoll.adapters.memory.clock import settle
from atoll.adapters.memory.election import MemoryElection, MemoryElections
from atoll.burst.usecases import deciding
from atoll.burst.usecases.by_hand import Request
from atoll.burst.wiring import Broker
from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Deeds, Ground
from atoll.core.model.burst import InstanceState
from atoll.ports.provider import ProviderUnavailable
from tests.services.burst.worlds import SMALL, World


class Threads:
    """Counts what is at work in other threads: no time may pass on the clock meanwhile."""

    def __init__(self) -> None:
        self._run = asyncio.to_thread
        self._working = 0

    async def run(self, work: Callable[..., Any], *given: Any) -> Any:
        """In the place of `asyncio.to_thread`."""
        self._working += 1
        try:
            return await self._run(work, *given)
        finally:
            self._working -= 1

    async def idle(self) -> None:
        """Return when nothing goes on before time passes."""
        await settle()
        while self._working:
            await asyncio.sleep(0.001)
            await settle()


class Replicas:
    """Replicas of the service that stand for election."""

    def __init__(self, world: World, threads: Threads) -> None:
        self.world = world
        self.threads = threads
        self.elections = MemoryElections(world.clock)
        self.elections.generation = 2  # later than any term that a test begins itself
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, name: str) -> Broker:
        """One more."""
        replica = self.world.another()
        election = MemoryElection(self.elections, prefix="/burst", identity=name, ttl_s=5)
        self.tasks += [
            asyncio.create_task(replica.candidate.stand(election)),
            asyncio.create_task(replica.candidate.watch_hints()),
        ]
        return replica

    async def pass_time(self, seconds: float) -> None:
        """In small steps, each of which leads to all that it can lead to."""
        for _ in range(int(seconds)):
            await self.world.clock.advance(1)
            await self.threads.idle()

    async def until(self, number: int, state: InstanceState, *, within_s: int) -> None:
        """An instance comes to a state."""
        for _ in range(within_s):
            if (await self.world.row(number)).state is state:
                return
            await self.pass_time(1)
        assert (await self.world.row(number)).state is state


@pytest.fixture
async def replicas(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Replicas]:
    """None yet."""
    threads = Threads()
    monkeypatch.setattr(asyncio, "to_thread", threads.run)
    world = World("cloud", "other", policy_allowed=True, policy_per_hour=10.0)
    found = Replicas(world, threads)
    yield found
    for task in found.tasks:
        task.cancel()
    await asyncio.gather(*found.tasks, return_exceptions=True)


async def test_one_leads_and_the_other_goes_on(replicas: Replicas) -> None:
    world = replicas.world
    first = replicas.start("one")
    await replicas.pass_time(1)
    second = replicas.start("two")
    assert (first.candidate.term is None, second.candidate.term is None) == (False, True)
    (policy,) = await world.use.policies.all()
    assert (policy.allowed, policy.budget.per_hour) == (True, 10_000_000)
    await second.use_cases.by_hand.request(Request(1, offer=SMALL), principal="ann")
    await replicas.until(1, InstanceState.BOOTING, within_s=5)
    # The first one is cut off: the second takes over, and finishes what it began.
    replicas.elections.cut("one")
    await replicas.pass_time(8)
    await world.join(await world.row(1))
    await replicas.until(1, InstanceState.READY, within_s=5)
    assert (first.candidate.term is None, second.candidate.term is None) == (True, False)
    await second.use_cases.by_hand.release([], every=True, now=True)
    await replicas.until(1, InstanceState.TERMINATED, within_s=60)
    assert len(world.machines()) == 1


async def test_a_provider_that_is_away_is_told_of(replicas: Replicas) -> None:
    world = replicas.world
    world.clouds["cloud"].mischief.errors += [ProviderUnavailable("no route")] * 10_000
    leader = replicas.start("one")
    await replicas.pass_time(2)
    there = SMALL.replace("cloud", "other")
    await world.use.by_hand.request(Request(1, offer=there), principal="ann")
    await replicas.until(1, InstanceState.BOOTING, within_s=5)
    await replicas.pass_time(15)
    standing = await leader.use_cases.looker.standing()
    health = {each.name: (each.reachable, each.message) for each in standing.providers}
    assert health == {"cloud": (False, "no route"), "other": (True, "")}
    assert 0 <= standing.next_at - world.clock.now() <= 5
    assert standing.instances == {"BOOTING": 1}
    assert len(world.clouds["cloud"].mischief.errors) > 9_950


async def test_instances_of_a_provider_that_is_gone_stay_as_they_are(replicas: Replicas) -> None:
    world = replicas.world
    await world.allow()
    leader = await world.lead()
    await world.use.by_hand.request(
        Request(1, offer=SMALL.replace("cloud", "other")), principal="ann"
    )
    await leader.live()
    del world.clouds["other"]
    replicas.start("one")
    await replicas.pass_time(5)
    await world.use.by_hand.release([], every=True, now=True)
    await replicas.pass_time(90)
    # Nobody says that it is gone, so it is paid for.
    row = await world.row(1)
    assert row.state is InstanceState.TERMINATING
    assert row.spent > 0


async def test_a_defect_in_the_decision_keeps_nobody_from_ending(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, decided = replicas.world, []

    def broken(ground: object) -> None:
        decided.append(ground)
        raise ZeroDivisionError

    monkeypatch.setattr(deciding, "decide", broken)
    replicas.start("one")
    await replicas.pass_time(2)
    await world.use.by_hand.request(Request(1, offer=SMALL), principal="ann")
    await replicas.until(1, InstanceState.BOOTING, within_s=5)
    await world.use.by_hand.release([], every=True, now=True)
    await replicas.until(1, InstanceState.TERMINATED, within_s=90)
    assert decided


async def test_nobody_wakes_itself_for_ever(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def counted(ground: Ground) -> Deeds:
        looks.append(ground.now)
        return decide(ground)

    monkeypatch.setattr(deciding, "decide", counted)
    replicas.start("one")
    await replicas.pass_time(60)
    assert 8 <= len(looks) <= 20
