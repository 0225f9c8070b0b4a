"""What a queued job wants of rented capacity."""

from collections.abc import Sequence
from dataclasses import dataclass

from atoll.core.model.burst import NO_CLUSTER, InstanceId
from atoll.core.model.burst_wants import Ask, Want
from atoll.core.model.ids import ClusterName
from atoll.core.model.plan import PendingJob, RunTerms


@dataclass(frozen=True, slots=True)
class Hope:
    """When a job starts without renting, as it is told. Unix seconds; 0: nobody can tell."""

    p50_at: float = 0.0
    p90_at: float = 0.0
    cluster: ClusterName = NO_CLUSTER


NO_HOPE = Hope()


def want_of(
    pending: PendingJob,
    asks: Sequence[Ask],
    hope: Hope,
    *,
    work_s: float,
    now: float,
    placed_on: InstanceId | None = None,
) -> Want:
    """A job's want. `work_s`: how long it is expected to run."""
    request = pending.request
    return Want(
        job=pending.id,
        queue=pending.queue,
        asks=tuple(asks),
        submitted_at=pending.submitted_at,
        work_s=work_s,
        limit_s=request.terms.time_limit_s,
        deadline_at=pending.deadline_at,
        local_p50_at=hope.p50_at,
        local_p90_at=hope.p90_at,
        cluster=hope.cluster,
        max_cost=request.burst_max_cost,
        overhead_s=overhead_s(request.terms, work_s=work_s),
        preemptible=request.terms.preemptible,
        placed_on=placed_on,
        as_of=now,
    )


def overhead_s(terms: RunTerms, *, work_s: float) -> float:
    """What an interruption costs on average: the restart, and half of what is not kept."""
    unkept_s = terms.checkpoint_interval_s or work_s
    return terms.restart_cost_s + min(unkept_s, work_s) / 2
