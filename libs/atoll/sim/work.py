"""Jobs as a simulation knows them: what is submitted, when, and how long it really runs."""

import math
from dataclasses import dataclass

from atoll.core.model.ids import JobId, QueueName
from atoll.core.model.plan import PendingJob, TaskPlacement, request_of
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.model.spec import JobSpec

SLICES_PER_DEVICE = 8


@dataclass(frozen=True, slots=True)
class Work:
    """One job to come. Its run time is known to the simulated cluster alone."""

    at: float
    """Seconds from the start of the simulation to its submit."""
    spec: JobSpec
    run_s: float
    """Seconds that it runs when nothing stops it, restarts left out."""


def pending(work: Work, number: JobId, *, start: float, attempts: int = 0) -> PendingJob:
    """The job as a leader holds it; `start` is the wall time of the simulation's beginning."""
    spec = work.spec
    return PendingJob(
        id=number,
        revision=attempts + 1,
        queue=QueueName(spec.queue),
        priority=spec.priority,
        submitted_at=start + work.at,
        request=request_of(spec),
        attempts=attempts,
        begin_at=spec.begin_at,
        depends_on=spec.depends_on,
        deadline_at=spec.deadline_at,
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """Work of a job that is safe: done and saved by a checkpoint."""

    saved_s: float = 0.0
    """Seconds of its run time."""
    restarts: int = 0

    def left_s(self, work: Work) -> float:
        """How long the next run takes when nothing stops it, its restart included."""
        return max(0.0, work.run_s - self.saved_s) + self.restart_s(work)

    def restart_s(self, work: Work) -> float:
        """What going on costs before any work is done; a first start costs nothing."""
        return work.spec.restart_cost_s if self.restarts else 0.0

    def after(self, work: Work, ran_s: float) -> "Progress":
        """What is safe once a run was stopped after `ran_s` seconds."""
        checkpoint = work.spec.checkpoint
        interval = checkpoint.interval_s if checkpoint else 0.0
        done = self.saved_s + max(0.0, ran_s - self.restart_s(work))
        saved = math.floor(done / interval + 1e-9) * interval if interval > 0 else 0.0
        return Progress(max(self.saved_s, min(saved, work.run_s)), self.restarts + 1)


def blocks_of(tasks: tuple[TaskPlacement, ...]) -> int:
    """Device blocks that tasks hold; a slice counts by its share of the memory."""
    return sum(
        grant.blocks or grant.slice_mask.bit_count() * BLOCKS_PER_DEVICE // SLICES_PER_DEVICE
        for task in tasks
        for grant in task.devices
    )


def cpu_of(tasks: tuple[TaskPlacement, ...]) -> int:
    """Milli-CPU that tasks hold."""
    return sum(task.cpu_milli for task in tasks)
