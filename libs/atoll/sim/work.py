"""Jobs as a simulation knows them: what is submitted, when, and how long it really runs."""

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
