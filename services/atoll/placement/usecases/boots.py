"""How long clusters take to begin what is placed there, as their own runs show it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from atoll.core.model.ids import AttemptId
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT
from atoll.core.state.boot_times import BootTimes
from atoll.core.state.world import World
from atoll.ports.store.placement import AttemptView


@dataclass(slots=True)
class BootBook:
    """Notes each start once."""

    times: BootTimes = field(default_factory=BootTimes)
    _begun: set[AttemptId] = field(default_factory=set)
    """Live attempts whose start was noted."""

    def absorb(self, views: Sequence[AttemptView], world: World) -> None:
        """Take in rows that changed, and tell the world when they say something new."""
        for attempt in (view.attempt for view in views):
            if attempt.started_at and attempt.id not in self._begun:
                self.times.note(attempt.cluster, attempt.started_at - attempt.created_at)
                self._begun.add(attempt.id)
            if attempt.state in TERMINAL_ATTEMPT:
                self._begun.discard(attempt.id)
        if views and self.times.moved():
            world.set_boots(self.times.medians)
