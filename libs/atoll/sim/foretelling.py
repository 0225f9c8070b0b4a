"""Forecasts in a simulation without messages, as a leader makes them beside its cycles."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from atoll.core.engine.timeline.forecast import forecast
from atoll.core.engine.timeline.track_record import Coverage
from atoll.core.model.ids import JobId
from atoll.core.policies.interfaces import Policies
from atoll.core.state.world import World
from atoll.placement.usecases.foresight import Foresight


@dataclass(slots=True)
class Foretelling:
    """Tells every job that has to wait when it will start. Times are unix seconds."""

    every_s: float = 60.0
    """Least time between two forecasts."""
    foresight: Foresight = field(default_factory=Foresight)
    _new: set[JobId] = field(default_factory=set)
    _next: float = 0.0

    def arrived(self, jobs: Iterable[JobId]) -> None:
        """Jobs were submitted."""
        self._new.update(jobs)

    def started(self, jobs: Iterable[JobId], *, now: float) -> None:
        """Jobs were placed."""
        placed = list(jobs)
        self._new.difference_update(placed)
        self.foresight.record.started(placed, now=now)

    def look(self, world: World, policies: Policies, *, now: float) -> None:
        """The cycles of this moment are over."""
        if not self._new or now < self._next:
            return
        rng = np.random.default_rng(self.foresight.made)
        made = forecast(world.survey(now), policies, rng=rng)
        self.foresight.took(made, world, self._new)
        self._new.clear()
        self._next = now + self.every_s

    def coverage(self) -> Coverage:
        """Over all starts so far."""
        return self.foresight.record.coverage_ever()
