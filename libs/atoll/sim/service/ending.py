"""What must hold when all is over and quiet."""

from collections.abc import Collection, Mapping
from typing import Final

from atoll.core.model.ids import JobId
from atoll.core.model.inventory import ClusterState
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
    """Accuse whatever is left over."""
    tables = plane.database.tables
    lost = sorted(set(acknowledged) - tables.jobs.keys())
    court.require(not lost, NO_LOSS, lost)
    for number in sorted(tables.jobs):
        job = tables.jobs[number]
        over = job.state in TERMINAL_JOB
        court.require(over, CONVERGED, f"job {number} is {job.state} ({job.reason})", job=number)
        worked = job.state is not JobState.SUCCEEDED or number in truth.finished
        court.require(worked, WORKED, f"job {number}", job=number)
    if court.first is not None:
        return
    court.require(not tables.allocations, GIVEN_BACK, sorted(tables.allocations))
    for name, site in sites.items():
        court.require(not site.running(), CONVERGED, name, "still runs", sorted(site.running()))
    for name, cluster in sorted(tables.clusters.items()):
        court.require(cluster.state is ClusterState.ACTIVE, CONVERGED, name, "is", cluster.state)
        quiet = cluster.acked_seq == cluster.head_seq
        court.require(quiet, CONVERGED, name, cluster.acked_seq, "of", cluster.head_seq, "applied")
    court.require(plane.leader is not None, CONVERGED, "nobody leads")
