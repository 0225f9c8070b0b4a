"""Cancel against start against finish, in a thousand orders: the first end wins and is final.

A user, the leader, dispatch and an agent each do their steps on one job, merged at random. What
must hold whatever the order is checked after every step.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import pytest

from atoll.adapters.system import SystemClock
from atoll.core.model.ids import AttemptId, JobId, job_of
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import (
    TERMINAL_ATTEMPT,
    TERMINAL_JOB,
    AttemptEvent,
    AttemptState,
    JobState,
    JobWish,
    StopCause,
)
from atoll.core.model.messages import Decision, DecisionKind, Report
from atoll.dispatch.telemetry import Telemetry
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.ready import Readier
from atoll.dispatch.usecases.reports import Reported, Reports
from atoll.dispatch.usecases.session import Session
from atoll.dispatch.usecases.sessions import Sessions
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.store.dispatch import InventoryDelta, SessionClaim
from tests.services.dispatch.values import CLUSTER, report, spec
from tests.services.dispatch.worlds import World, node

Step = Callable[[], Awaitable[None]]
CAUSES = [StopCause.CANCEL, StopCause.PREEMPT, StopCause.BIND_DEADLINE]
ENDS = [AttemptEvent.FINISHED, AttemptEvent.FINISHED, AttemptEvent.REJECTED]


class Desk:
    """Dispatch without its loops: each step by hand."""

    def __init__(self, world: World) -> None:
        store, observer = world.stores.dispatch, Telemetry(SystemClock())
        self.world = world
        self.ready = Readier(store, observer)
        self.reports = Reports(store, wake=lambda _: None, observer=observer)
        self.sessions = Sessions(store, SessionTable(most=10), limits=Limits())
        self.last_report = 0

    async def open(self) -> Session:
        """A session of a cluster with one node."""
        claim = SessionClaim(
            cluster=CLUSTER,
            instance="first",
            holder="here",
            backend="simulated",
            can_guard=True,
            levels=(),
            labels=(),
            lease_s=600.0,
            applied_seq=0,
            last_report=0,
            fresh_journal=False,
        )
        session = await self.sessions.open(claim)
        await self.world.stores.dispatch.put_inventory(
            InventoryDelta(CLUSTER, session.epoch, 1, full=True, nodes=(node(),))
        )
        return session

    def number(self) -> int:
        """The next report's."""
        self.last_report += 1
        return self.last_report


@dataclass
class Story:
    """One job from its placement to its end, in an order that the generator chooses."""

    desk: Desk
    session: Session
    decision: Decision
    rng: random.Random
    told: DecisionKind | None = None
    """What the agent was told of the decision; None: not pushed yet."""
    stop_heard: bool = False
    said: list[AttemptEvent] = field(default_factory=list)
    unsent: list[Report] = field(default_factory=list)
    ended_as: JobState | None = None

    @property
    def attempt(self) -> AttemptId:
        return self.decision.attempt

    @property
    def job(self) -> JobId:
        return job_of(self.attempt)

    async def play(self) -> None:
        """All actors' steps, merged; then whatever is left for the end to come."""
        end = self.rng.choice(ENDS)
        actors = [
            iter([self.mark, self.push]),
            iter([
                self.work(AttemptEvent.ACCEPTED),
                self.work(AttemptEvent.STARTED),
                self.work(end),
            ]),
            iter([self.revoke, self.hear]),
            iter([self.cancel] * self.rng.randint(0, 1)),
            iter([self.send] * 3),
        ]
        while actors:
            actor = self.rng.choice(actors)
            step = next(actor, None)
            if step is None:
                actors.remove(actor)
                continue
            await step()
            await self.check()
        await self.settle()

    async def mark(self) -> None:
        """Dispatch commits that the decision is sent."""
        mark = (CLUSTER, self.session.epoch, self.decision.number)
        assert await self.desk.world.stores.dispatch.mark_sent([mark]) == {CLUSTER}

    async def push(self) -> None:
        """Dispatch pushes what it is then."""
        (ready,) = await self.desk.ready([self.decision])
        self.told = ready.decision.kind

    def work(self, event: AttemptEvent) -> Step:
        """The agent gets on with it, if it was told to and not told to stop."""

        async def step() -> None:
            over = any(
                said not in (AttemptEvent.ACCEPTED, AttemptEvent.STARTED) for said in self.said
            )
            if self.told is not DecisionKind.START or over:
                return
            if self.stop_heard:
                event_now = AttemptEvent.STOPPED
            elif event is AttemptEvent.REJECTED and AttemptEvent.STARTED in self.said:
                event_now = AttemptEvent.FINISHED
            else:
                event_now = event
            self.say(event_now)

        return step

    def say(self, event: AttemptEvent) -> None:
        code = self.rng.choice([0, 1]) if event is AttemptEvent.FINISHED else None
        self.said.append(event)
        self.unsent.append(report(self.desk.number(), event, of=self.attempt, exit_code=code))

    async def send(self) -> None:
        """Reports reach dispatch, at times twice, as after a lost acknowledgement."""
        reports = tuple(self.unsent)
        if not reports:
            return
        for _ in range(self.rng.randint(1, 2)):
            await self.desk.reports.apply([Reported(self.session, reports, 0.0)])
        self.unsent.clear()

    async def revoke(self) -> None:
        """The leader takes it back, for one reason or another."""
        cause = self.rng.choice(CAUSES)
        await self.desk.world.revoke([self.attempt], cause, publish=False)

    async def hear(self) -> None:
        """The agent hears of the STOP, if one was decided; it comes after the START."""
        rows = await self.desk.world.stores.dispatch.decisions_after(
            CLUSTER, self.decision.number, limit=10
        )
        stopped = any(d.kind is DecisionKind.STOP and d.attempt == self.attempt for d in rows)
        self.stop_heard = stopped and self.told is not None

    async def cancel(self) -> None:
        """The user wants it no more."""
        if (await self.desk.world.job(self.job)).attempt is not None:
            await self.desk.world.cancel(self.job)

    async def settle(self) -> None:
        """Let everything arrive."""
        if self.told is None:
            await self.mark()
            await self.push()
        await self.hear()
        await self.work(AttemptEvent.FINISHED)()
        await self.send()
        await self.check()
        await self.check_end()

    async def check(self) -> None:
        """What holds at any time."""
        job, attempt = await self.rows()
        live = attempt.state not in TERMINAL_ATTEMPT
        held = {row.attempt for row in await self.desk.world.allocations()}
        assert live == (attempt.id in held), "allocations end with their attempt, and not before"
        assert live == (job.attempt == attempt.id)
        assert self.ended_as in (None, job.state), "a final state changed"
        if job.state in TERMINAL_JOB:
            self.ended_as = job.state

    async def check_end(self) -> None:
        """What everything came to."""
        job, attempt = await self.rows()
        assert attempt.state in TERMINAL_ATTEMPT
        if self.told is DecisionKind.VOID:
            assert not self.said
            assert attempt.state is AttemptState.VOID
        ends = [event for event in self.said if event.value in {s.value for s in TERMINAL_ATTEMPT}]
        if ends:
            assert attempt.state.value == ends[0].value
        assert job.state is _expected(job, attempt)

    async def rows(self) -> tuple[Job, Attempt]:
        world = self.desk.world
        return await world.job(self.job), await world.attempt(self.attempt)


def _expected(job: Job, attempt: Attempt) -> JobState:
    if attempt.state is AttemptState.FINISHED and attempt.exit_code == 0:
        return JobState.SUCCEEDED
    if job.wish is JobWish.CANCEL:
        return JobState.CANCELLED
    return JobState.FAILED if attempt.state is AttemptState.FINISHED else JobState.QUEUED


def _seeds(block: int, size: int) -> Iterator[random.Random]:
    return (random.Random(f"{block}-{number}") for number in range(size))


@pytest.mark.parametrize("block", range(10))
async def test_a_hundred_orders_in_memory(memory_world: World, block: int) -> None:
    desk = Desk(memory_world)
    session = await desk.open()
    for rng in _seeds(block, 100):
        (decision,) = await memory_world.run(1, publish=False)
        await Story(desk, session, decision, rng).play()


async def test_the_same_over_a_real_database(real_world: World) -> None:
    desk = Desk(real_world)
    session = await desk.open()
    for rng in _seeds(99, 30):
        (decision,) = await real_world.run(1, publish=False)
        await Story(desk, session, decision, rng).play()


async def test_cancels_stops_and_ends_that_really_run_at_once(real_world: World) -> None:
    """No order is given: transactions of three services meet in the database."""
    desk = Desk(real_world)
    session = await desk.open()
    jobs = await real_world.submit(60, job=spec())
    decisions = await real_world.place(jobs, publish=False)
    mark = (CLUSTER, session.epoch, decisions[-1].number)
    assert await real_world.stores.dispatch.mark_sent([mark])
    reports = [
        report(desk.number(), event, of=d.attempt, exit_code=0)
        for event in (AttemptEvent.STARTED, AttemptEvent.FINISHED)
        for d in decisions
    ]
    batches = [tuple(reports[first : first + 20]) for first in range(0, len(reports), 20)]

    async def agent() -> None:
        for batch in batches:
            await desk.reports.apply([Reported(session, batch, 0.0)])

    async def users() -> None:
        for job in jobs:
            await real_world.cancel(job.id)

    async def leader() -> None:
        for decision in decisions:
            await real_world.revoke([decision.attempt], StopCause.CANCEL, publish=False)

    await asyncio.gather(agent(), users(), leader())
    for job in jobs:
        assert (await real_world.job(job.id)).state is JobState.SUCCEEDED
    assert await real_world.allocations() == []
