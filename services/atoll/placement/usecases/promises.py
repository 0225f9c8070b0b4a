"""Answers whether jobs would meet their deadlines, and keeps what was promised until they are here.

Between the answer and the job stands the submission's commit: so long the
promise is kept beside the jobs that the leader knows.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.core.engine.deadlines.promise import promise
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.model.deadline import Chance, Verdict
from atoll.core.model.plan import PendingJob
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.world import World

KEPT_S: Final = 30.0
"""How long a promise waits for its job; longer than a submit may take."""
SKEW_S: Final = 5.0
"""The store's clock may be so far behind."""


@dataclass(frozen=True, slots=True)
class Early:
    """A promise whose job has not been seen yet."""

    ask: Ask
    at: float


@dataclass(slots=True)
class Promises:
    """Gives answers one after another. Times are wall times."""

    _early: list[Early] = field(default_factory=list)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def early(self, now: float) -> list[Ask]:
        """What was promised a moment ago to jobs that may not be here yet."""
        return [early.ask for early in self._early if now < early.at + KEPT_S]

    async def answer(
        self, world: World, asks: Sequence[Ask], *, now: float, keep: bool
    ) -> list[Verdict]:
        """An answer for each; `keep`: the jobs are about to be submitted."""
        async with self._lock:
            standing, snapshot = world.guaranteed(), world.freeze(now)
            self._early = list(_missing(self._early, standing, snapshot, now=now))
            known = [ask_of(job) for job in standing] + [early.ask for early in self._early]
            # Off the event loop: the kernels release the GIL.
            found = await asyncio.to_thread(promise, snapshot, known, asks, now=now)
            if keep:
                self._early += [
                    Early(ask, now)
                    for ask, verdict in zip(asks, found, strict=True)
                    if verdict.chance is Chance.GUARANTEED
                ]
            return found


def ask_of(job: PendingJob) -> Ask:
    """A queued job that was promised its deadline, as it was asked for."""
    return Ask(
        job.queue, job.request, job.deadline_at, begin_at=job.begin_at, waits=bool(job.depends_on)
    )


def _missing(
    early: Sequence[Early], standing: Sequence[PendingJob], snapshot: Snapshot, *, now: float
) -> Iterator[Early]:
    """The promises that still wait for their job; each job is the one of one promise only."""
    seen = [(job.queue, job.deadline_at, job.submitted_at) for job in standing]
    running = snapshot.running
    for slot in running.slots().tolist():
        holding = running.holdings[slot]
        if holding.run is not None and holding.run.guaranteed:
            seen.append((holding.queue, holding.run.deadline_at, holding.run.submitted_at))
    for promised in early:
        ask, at = promised.ask, promised.at
        match = next(
            (
                job
                for job in seen
                if job[:2] == (ask.queue, ask.deadline_at) and job[2] >= at - SKEW_S
            ),
            None,
        )
        if match is not None:
            seen.remove(match)
        elif now < at + KEPT_S:
            yield promised
