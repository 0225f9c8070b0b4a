"""What must hold when all is over and quiet."""

from collections.abc import Collection, Mapping
from typing import Final

from atoll.core.model.ids import AttemptId, JobId
from atoll.core.model.inventory import ClusterState
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import TERMINAL_JOB, JobState
from atoll.sim.service.plane import Plane
from atoll.sim.service.site import Site
from atoll.sim.service.truth import Truth
from atoll.sim.service.witness import Court

NO_LOSS: Final = "I1 an acknowledged submit is never lost"
CONVERGED: Final = "I14 converged"
WORKED: Final = "I8 what succeeded has run"
GIVEN_BACK: Final = "I9 what was held is given back once"


def check_end(
    court: Court,
    plane: Plane,
    sites: Mapping[str, Site],
    *,
    truth: Truth,
    acknowledged: Collection[JobId],
) -> None:
    """Accuse whatever is left over. What runs may go on running, and others wait for it."""
    tables = plane.database.tables
    lost = sorted(set(acknowledged) - tables.jobs.keys())
    court.require(not lost, NO_LOSS, lost)
    running = {attempt for site in sites.values() for attempt in site.running()}
    for number in sorted(tables.jobs):
        job = tables.jobs[number]
        well = _is_well(job, running)
        court.require(well, CONVERGED, f"job {number} is {job.state} ({job.reason})", job=number)
        worked = job.state is not JobState.SUCCEEDED or number in truth.finished
        court.require(worked, WORKED, f"job {number}", job=number)
    court.require(tables.allocations.keys() == running, GIVEN_BACK, sorted(tables.allocations))
    for name, cluster in sorted(tables.clusters.items()):
        court.require(cluster.state is ClusterState.ACTIVE, CONVERGED, name, "is", cluster.state)
        quiet = cluster.acked_seq == cluster.head_seq
        court.require(quiet, CONVERGED, name, cluster.acked_seq, "of", cluster.head_seq, "applied")
    court.require(plane.leader is not None, CONVERGED, "nobody leads")


def _is_well(job: Job, running: Collection[AttemptId]) -> bool:
    if job.state is JobState.RUNNING:
        return job.attempt in running
    return job.state in TERMINAL_JOB or (job.state is JobState.QUEUED and bool(running))
