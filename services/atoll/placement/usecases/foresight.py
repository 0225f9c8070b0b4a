"""When queued jobs will start: forecasts beside the cycles, and a record of how they held.

A forecast is made off the event loop on a survey of the queue, and answers are
read from the last one. What jobs were told first, once a cycle had found no place
for them, is compared with when they start.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from atoll.core.engine.timeline.forecast import Forecast, forecast
from atoll.core.engine.timeline.track_record import TrackRecord, from_text
from atoll.core.model.ids import JobId
from atoll.core.model.lifecycle import AttemptState
from atoll.core.state.run_times import EndedRun, ended_run
from atoll.core.state.world import World
from atoll.placement.usecases.want_book import WantBook
from atoll.ports.store.placement import AttemptView

if TYPE_CHECKING:
    from atoll.placement.usecases.leader import Leader

PAST_RUNS: Final = 4096
"""Of which a new leader learns how long runs last."""


@dataclass(slots=True)
class Foresight:
    """Of one replica while it leads."""

    record: TrackRecord = field(default_factory=TrackRecord)
    latest: Forecast = field(default_factory=Forecast)
    made: int = 0
    """Forecasts so far."""
    wants: WantBook = field(default_factory=WantBook)
    _saved: str = ""

    def restore(self, text: str) -> None:
        """Go on from what an earlier leader wrote."""
        self.record = from_text(text)

    def took(self, made: Forecast, world: World, jobs: Iterable[JobId]) -> None:
        """A forecast was made; `jobs` have had none before."""
        self.latest = made
        self.made += 1
        self.record.still_wait(now=made.as_of)
        self.record.gone(set(self.record.followed).difference(self._waiting(world)))
        found = ((job, world.pending(job)) for job in self.record.chosen(world.still_pending(jobs)))
        points = ((job, made.of(pending)) for job, pending in found if pending is not None)
        starts = {job: point.start for job, point in points if point is not None}
        self.record.tell(starts, now=made.as_of)

    def unsaved(self) -> str:
        """The record as text; empty when nothing has changed since it was taken for granted."""
        text = self.record.to_text()
        return "" if text == self._saved else text

    def saved(self, text: str) -> None:
        """The record was written as it was then."""
        self._saved = text

    def _waiting(self, world: World) -> list[JobId]:
        return world.still_pending(self.record.followed)


async def foresee(leader: "Leader") -> None:
    """Make a forecast; the leader's steps go on meanwhile."""
    async with leader.lock:
        world, now = leader.memory.world, leader.clock.now()
        jobs = leader.memory.newcomers.take_left()
        survey = world.survey(now) if world.pending_count else None
    rng = np.random.default_rng((leader.fence.epoch.revision, leader.foresight.made))
    made = (
        await asyncio.to_thread(forecast, survey, leader.policies, rng=rng)
        if survey is not None
        else Forecast(now)
    )
    leader.foresight.took(made, leader.memory.world, jobs)


async def remember(leader: "Leader") -> None:
    """Write the record down for the next leader. To be called under the leader's lock."""
    text = leader.foresight.unsaved()
    if not text:
        return
    async with leader.store.begin() as tx:
        after = await tx.require(leader.fence)
        await tx.put_forecasts(leader.shard, text)
    leader.fence = after
    leader.foresight.saved(text)


def runs_of(views: Sequence[AttemptView]) -> list[EndedRun]:
    """What attempts that came to their own end tell of run times, in the order of their ends."""
    finished = [
        view
        for view in views
        if view.attempt.state is AttemptState.FINISHED
        and view.attempt.ended_at > view.attempt.created_at
    ]
    return [_run(view) for view in sorted(finished, key=lambda view: view.attempt.ended_at)]


def _run(view: AttemptView) -> EndedRun:
    attempt = view.attempt
    limit_s = view.run.terms.time_limit_s if view.run is not None else 0.0
    ran_s = attempt.ended_at - attempt.created_at
    return ended_run(view.queue, attempt.tasks, limit_s=limit_s, ran_s=ran_s)
