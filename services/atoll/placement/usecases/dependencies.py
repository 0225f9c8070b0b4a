"""Jobs that wait for other jobs."""

from collections.abc import Collection
from dataclasses import dataclass, field

from atoll.core.model.ids import JobId
from atoll.core.model.lifecycle import TERMINAL_JOB, JobState


@dataclass(frozen=True, slots=True)
class Settled:
    """What the end of some jobs means for those that wait for them."""

    succeeded: tuple[JobId, ...]
    """Dependencies that are fulfilled."""
    doomed: tuple[JobId, ...]
    """Waiting jobs that can never run."""


@dataclass(slots=True)
class Dependencies:
    """Who waits for whom. A job may be added again: nothing changes then."""

    _waiting: dict[JobId, set[JobId]] = field(default_factory=dict)

    def add(self, job: JobId, needs: Collection[JobId]) -> list[JobId]:
        """`job` waits for all of `needs`; those that nobody waited for yet."""
        new = [need for need in needs if need not in self._waiting]
        for need in needs:
            self._waiting.setdefault(need, set()).add(job)
        return new

    def settle(self, states: dict[JobId, JobState]) -> Settled:
        """Take note of jobs' states; those that have not ended change nothing."""
        succeeded: list[JobId] = []
        doomed: set[JobId] = set()
        for job in sorted(states):
            if states[job] not in TERMINAL_JOB or job not in self._waiting:
                continue
            waiting = self._waiting.pop(job)
            if states[job] is JobState.SUCCEEDED:
                succeeded.append(job)
            else:
                doomed |= waiting
        return Settled(tuple(succeeded), tuple(sorted(doomed)))
