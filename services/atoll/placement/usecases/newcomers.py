"""Tells jobs that had to wait for something from those that only had to wait for us.

How soon a job is placed says how quick placement is only when there was room for it. A job has
waited when a complete cycle looked at the queue and left it there: for capacity, a quota, a time,
another job. So has one that was held or placed before: its revision shows it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from atoll.core.model.ids import JobId
from atoll.core.model.plan import PendingJob

UNTOUCHED = 1
"""Revision of a job that nobody has changed since it was submitted."""


@dataclass(slots=True)
class Newcomers:
    """Queued jobs that no complete cycle has looked at yet."""

    _submitted_at: dict[JobId, float] = field(default_factory=dict)
    _left: set[JobId] = field(default_factory=set)

    def enter(self, jobs: Iterable[PendingJob]) -> None:
        """Take in jobs that were just learnt of."""
        self._submitted_at.update(
            (job.id, job.submitted_at) for job in jobs if job.revision == UNTOUCHED
        )

    def drop_older(self, submitted_before: float) -> None:
        """After a take-over: an earlier leader has looked at these. Unix seconds."""
        kept = {job: at for job, at in self._submitted_at.items() if at >= submitted_before}
        self._submitted_at = kept

    def looked_at(self, placed: Iterable[JobId] = (), *, cut: bool = False) -> frozenset[JobId]:
        """A cycle has placed these; those of them that were newcomers.

        `cut`: it stopped at its bound, so what it left may not have been looked at.
        """
        prompt = frozenset(job for job in placed if job in self._submitted_at)
        if cut:
            for job in prompt:
                del self._submitted_at[job]
        else:
            self._left.update(self._submitted_at.keys() - prompt)
            self._submitted_at.clear()
        return prompt

    def take_left(self) -> set[JobId]:
        """Jobs that were looked at and left since the last call; perhaps they are gone by now."""
        left, self._left = self._left, set()
        return left
