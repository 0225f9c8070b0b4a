"""Simulates jobs with deadlines on a pool of devices, over the very book of the service.

Nothing fails, and a job runs as fast as its throughput table says. Every start
and every change of size costs a pause in which the job holds its devices and
does nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from atoll.core.engine.deadlines.book import ATOLL, ELASTICFLOW, Book
from atoll.core.engine.deadlines.terms import (
    FOR_EVER,
    Answer,
    BookPolicy,
    Change,
    DeadlineJob,
)
from atoll.core.model.deadline import Chance

POLICIES: Final = {"atoll": ATOLL, "elasticflow": ELASTICFLOW}
MOST_THOROUGH: Final = 8
"""Waiting jobs for whom all plans are made anew when devices came free; others only if they fit."""
SLOT_S: Final = 60
"""ElasticFlow decides once a minute, as in the published runs; the book decides at each event."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job with a deadline, submitted at `at` seconds."""

    at: int
    job: DeadlineJob


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a job held a number of devices, pauses included."""

    job: int
    start: int
    end: int
    devices: int


@dataclass(slots=True)
class Outcome:
    """What became of the jobs."""

    devices: int
    answers: dict[int, Answer] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """When each job that ran was through."""
    stretches: list[Stretch] = field(default_factory=list)

    def met(self, arrivals: Iterable[Arrival]) -> list[int]:
        """Jobs that were through by their deadline."""
        return [a.job.id for a in arrivals if self.ends.get(a.job.id, FOR_EVER) <= a.job.deadline]


def simulate(
    arrivals: list[Arrival],
    devices: int,
    *,
    policy: str = "atoll",
    tick: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run all arrivals, sorted by time, to their ends. `tick` is called once for each of them."""
    run = _Run(arrivals, devices, policy=POLICIES[policy], tick=tick)
    while (now := run.next_time()) < FOR_EVER:
        run.step(now)
    return run.outcome


class _Run:
    """The state of one simulation."""

    def __init__(
        self,
        arrivals: list[Arrival],
        devices: int,
        *,
        policy: BookPolicy,
        tick: Callable[[], None],
    ) -> None:
        self.outcome = Outcome(devices)
        self._arrivals, self._next = arrivals, 0
        self._policy, self._tick = policy, tick
        self._book = Book(devices, policy=policy)
        self._waiting: dict[int, DeadlineJob] = {}
        self._held: dict[int, Change] = {}
        self._now = -1
        # ElasticFlow's plans know nothing of pauses; they are charged all the same.
        self._charge = arrivals[0].job.cost if policy.replans and arrivals else None

    def next_time(self) -> int:
        """When the next thing happens; FOR_EVER: never."""
        times = [self._book.next_time(self._now)]
        if self._next < len(self._arrivals):
            times.append(self._arrivals[self._next].at)
        first = min(times)
        if self._policy.replans and first < FOR_EVER:
            return -(-first // SLOT_S) * SLOT_S
        return first

    def step(self, now: int) -> None:
        """Everything that happens at `now`."""
        self._now = now
        ended = self._note(self._book.finish(now))
        if self._policy.replans:
            self._book.renew(now)
        else:
            self._note(self._book.begin(now))
        if ended:
            self._try_again(now)
        self._admit(now)
        self._book.lend(now)
        self._note(self._book.begin(now, charge=self._charge))

    def _admit(self, now: int) -> None:
        while self._next < len(self._arrivals) and self._arrivals[self._next].at <= now:
            job = self._arrivals[self._next].job
            if self._policy.replans:
                job = replace(job, cost=0)
            answer = self._book.admit(job, now)
            self.outcome.answers[job.id] = answer
            if answer.chance is Chance.LIKELY and not self._policy.replans:
                self._waiting[job.id] = job
            self._next += 1
            self._tick()

    def _try_again(self, now: int) -> None:
        waiting = sorted(self._waiting.values(), key=lambda job: (job.work, job.id))
        for place, job in enumerate(waiting):
            answer = self._book.admit(job, now, thorough=place < MOST_THOROUGH)
            if answer.chance is not Chance.LIKELY:
                del self._waiting[job.id]

    def _note(self, changes: list[Change]) -> bool:
        for change in changes:
            before = self._held.pop(change.job, None)
            if before is not None and before.devices and change.time > before.time:
                self.outcome.stretches.append(
                    Stretch(change.job, before.time, change.time, before.devices)
                )
            if self._book.holds(change.job):
                self._held[change.job] = change
            else:
                self.outcome.ends[change.job] = change.time
        return bool(changes)
