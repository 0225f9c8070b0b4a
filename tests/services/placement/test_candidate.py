"""A replica as it stands, leads and steps down, over elections and a store in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from atoll.adapters.memory.election import MemoryElection, MemoryElections
from atoll.adapters.memory.store import MemoryStore
from atoll.adapters.memory.streams import MemoryDecisionStream, MemoryHints
from atoll.adapters.system import SystemClock
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import DEFAULT_SHARD
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.core.model.messages import DecisionKind
from atoll.core.policies.registry import policies
from atoll.placement.loops import Candidate
from atoll.placement.publish import Publisher
from atoll.placement.settings import PlacementSettings
from atoll.ports.topics import PLACEMENT
from atoll.runtime.terms import RETRY
from tests.adapters.store_builders import NORTH
from tests.services.placement.shard import Shard, one_gpu
from tests.support.waiting import eventually

SETTINGS = PlacementSettings.model_validate({
    "period_s": 0.1,
    "listen_period_s": 0.1,
    "audit_period_s": 0.1,
})


class Replicas(Shard):
    """Candidates of one shard, each with its loops running."""

    def __init__(self) -> None:
        super().__init__()
        self.real = SystemClock()
        self.elections = MemoryElections(self.real)
        self.hints = MemoryHints()
        self.stream = MemoryDecisionStream(self.real)
        self.candidates: dict[str, Candidate] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def stand(self, name: str) -> Candidate:
        """Start a replica."""
        publisher = Publisher(self.stream, self.hints)
        candidate = Candidate(
            settings=SETTINGS,
            store=MemoryStore(self.database, self.clock).placement,
            registry=None,
            hints=self.hints,
            publisher=publisher,
            policies=policies(),
            clock=self.real,
        )
        election = MemoryElection(self.elections, prefix="placement", identity=name, ttl_s=1.0)
        loops = (candidate.stand(election), publisher.run(), candidate.watch_hints())
        self._tasks += [asyncio.create_task(loop) for loop in loops]
        self.candidates[name] = candidate
        return candidate

    async def all_are(self, jobs: list[Job], state: JobState) -> bool:
        """Whether all of the jobs are in this state."""
        return set(await self.states(jobs)) == {state}

    async def close(self) -> None:
        """End every loop."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def replicas() -> AsyncIterator[Replicas]:
    made = Replicas()
    await made.cluster()
    yield made
    await made.close()


async def test_a_hint_wakes_the_leader_and_decisions_are_published(replicas: Replicas) -> None:
    candidate = replicas.stand("one")
    await eventually(lambda: candidate.leader is not None)
    jobs = await replicas.submit(one_gpu("a"), one_gpu("b"))
    await replicas.hints.notify(PLACEMENT)
    await eventually(lambda: replicas.all_are(jobs, JobState.ASSIGNED))
    entries = await replicas.stream.read({NORTH: 0}, 2000)
    assert [entry.number for entry in entries] == [1, 2]


async def test_a_lost_hint_is_made_up_for_within_a_period(replicas: Replicas) -> None:
    candidate = replicas.stand("one")
    await eventually(lambda: candidate.leader is not None)
    jobs = await replicas.submit(one_gpu())
    await eventually(lambda: replicas.all_are(jobs, JobState.ASSIGNED))


async def test_a_standby_takes_over_and_the_old_leader_steps_down(replicas: Replicas) -> None:
    first = replicas.stand("one")
    await eventually(lambda: first.leader is not None)
    second = replicas.stand("two")
    replicas.elections.revoke("one")
    await eventually(lambda: second.leader is not None and first.leader is None)
    jobs = await replicas.submit(one_gpu())
    await eventually(lambda: replicas.all_are(jobs, JobState.ASSIGNED))
    assert (await replicas.attempt(jobs[0].id)).epoch.revision > 1
    assert await first.leader_address() == "two"


async def test_without_a_quorum_the_last_leader_goes_on_with_stops_alone(
    replicas: Replicas,
) -> None:
    candidate = replicas.stand("one")
    await eventually(lambda: candidate.leader is not None)
    running = await replicas.submit(one_gpu())
    await eventually(lambda: replicas.all_are(running, JobState.ASSIGNED))
    attempt = await replicas.attempt(running[0].id)
    await replicas.sent()
    await replicas.report(attempt.id, AttemptEvent.STARTED)
    replicas.elections.stop()
    await eventually(lambda: candidate.leader is None)
    await replicas.cancel(running[0].id)
    late = await replicas.submit(one_gpu("late"))
    await eventually(lambda: _stopped(replicas))
    assert await replicas.states(late) == [JobState.QUEUED]
    replicas.elections.resume()
    await eventually(lambda: replicas.all_are(late, JobState.ASSIGNED))


async def test_a_fence_that_moved_under_the_same_leader_makes_it_load_anew(
    replicas: Replicas,
) -> None:
    candidate = replicas.stand("one")
    await eventually(lambda: candidate.leader is not None)
    fence = await replicas.store.placement.read_fence(DEFAULT_SHARD)
    async with replicas.store.placement.begin() as tx:
        await tx.require(fence)
    jobs = await replicas.submit(one_gpu())
    await eventually(lambda: replicas.all_are(jobs, JobState.ASSIGNED))
    assert candidate.leader is not None
    assert candidate.leader.fence.epoch == fence.epoch


async def test_who_is_elected_below_the_rows_epoch_waits_longer_each_time(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(replicas.real, "sleep", sleep)
    await replicas.lead(epoch=6)
    candidate = replicas.stand("one")
    await eventually(lambda: candidate.leader is not None)
    assert candidate.leader is not None
    assert candidate.leader.fence.epoch.revision >= 6
    waits = [seconds for seconds in slept if seconds >= RETRY.first_s]
    assert waits[:4] == [RETRY.wait_s(n, 0.0) for n in (1, 2, 3, 4)]


async def test_a_standby_forgets_no_cluster(replicas: Replicas) -> None:
    first = replicas.stand("one")
    await eventually(lambda: first.leader is not None)
    standby = replicas.stand("two")
    with pytest.raises(DomainError, match="does not lead"):
        await standby.forget(NORTH, fenced=True)


async def _stopped(replicas: Replicas) -> bool:
    return any(d.kind is DecisionKind.STOP for d in await replicas.decisions())
