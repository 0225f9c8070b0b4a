"""How far simulated jobs have come: what a checkpoint saved, a later run need not do again."""

import math
from dataclasses import dataclass
from typing import Final

from atoll.core.model.ids import JobId
from atoll.core.model.spec import JobSpec


@dataclass(frozen=True, slots=True)
class Saving:
    """How a job saves its work, in seconds of the job."""

    interval_s: float = 0.0
    """Between two checkpoints; 0: there are none."""
    restart_cost_s: float = 0.0


NEVER: Final = Saving()
"""All work is lost when the run is stopped."""


def saving_of(spec: JobSpec) -> Saving:
    """How the job of that spec saves its work."""
    return Saving(spec.checkpoint.interval_s if spec.checkpoint else 0.0, spec.restart_cost_s)


@dataclass(frozen=True, slots=True)
class Progress:
    """Work of a job that is safe, in seconds of the job."""

    saved_s: float = 0.0
    restarts: int = 0

    def left_s(self, saving: Saving, work_s: float) -> float:
        """How long the next run takes when nothing stops it, its restart included."""
        return max(0.0, work_s - self.saved_s) + self.restart_s(saving)

    def restart_s(self, saving: Saving) -> float:
        """What going on costs before any work is done; a first start costs nothing."""
        return saving.restart_cost_s if self.restarts else 0.0

    def after(self, saving: Saving, work_s: float, *, ran_s: float) -> "Progress":
        """What is safe once a run was stopped after `ran_s` seconds; `work_s` is the whole job."""
        interval = saving.interval_s
        done = self.saved_s + max(0.0, ran_s - self.restart_s(saving))
        saved = math.floor(done / interval + 1e-9) * interval if interval > 0 else 0.0
        return Progress(max(self.saved_s, min(saved, work_s)), self.restarts + 1)


NEW: Final = Progress()
"""Of a job that has not run yet."""


class ProgressBook:
    """Progress by job, as far as it is known here; several clusters may share one."""

    def __init__(self) -> None:
        self._known: dict[JobId, Progress] = {}

    def of(self, job: JobId) -> Progress:
        """How far the job has come."""
        return self._known.get(job, NEW)

    def note(self, job: JobId, progress: Progress) -> None:
        """Remember it; of several, the latest counts."""
        if progress.restarts > self.of(job).restarts:
            self._known[job] = progress

    def forget(self, job: JobId) -> None:
        """The job is done."""
        self._known.pop(job, None)
