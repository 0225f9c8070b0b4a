"""What placement measures of itself."""

from collections import deque
from dataclasses import replace
from typing import Final

from atoll.core.engine.timeline.eta_kernels import LEVELS
from atoll.core.model.ids import ClusterName, job_of
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.core.model.trace import job_trace
from atoll.placement.usecases.commit import Committed, Placed
from atoll.placement.usecases.guarantees import Lost
from atoll.placement.usecases.leader import Counters, Leader
from atoll.placement.usecases.rejections import Rejection
from atoll.runtime import logs, metrics, tracing

log = logs.logger(__name__)

LEADING: Final = metrics.gauge("placement_leading_info", "1 while this replica leads its shard.")
CYCLE_SECONDS: Final = metrics.histogram(
    "placement_cycle_seconds", "A cycle, from catching up to the commit."
)
PLACED_SECONDS: Final = metrics.histogram(
    "job_placed_seconds",
    "From a job's submit to its placement. waited=no: there was room when it was first tried.",
    ("waited",),
    buckets=(
        0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200, 86400,
    ),
)  # fmt: skip
PLACEMENTS: Final = metrics.counter("placement_jobs_placed_total", "Jobs placed and committed.")
DROPPED: Final = metrics.counter(
    "placement_jobs_dropped_total", "Placements whose job changed before the commit."
)
ROLLBACKS: Final = metrics.counter(
    "placement_rollbacks_total", "Attempts that a cluster refused or did not answer."
)
LOST: Final = metrics.counter(
    "placement_attempts_lost_total", "Attempts given up because their cluster stayed silent."
)
PREEMPTED: Final = metrics.counter(
    "placement_attempts_preempted_total", "Attempts that were stopped to make room for others."
)
BOOKED: Final = metrics.counter(
    "placement_attempts_stopped_for_bookings_total",
    "Attempts that were stopped because a booking began or ended, or its owner came.",
)
REBOOKED: Final = metrics.counter(
    "placement_rebooked_total", "Times that bookings changed under a plan, which was made anew."
)
WINDOWS: Final = metrics.gauge(
    "placement_windows_count", "Windows of bookings that are not over, by the leader's memory."
)
RESIZED: Final = metrics.counter(
    "placement_resizes_total", "Changes of size that running attempts were told."
)
GUARANTEES_LOST: Final = metrics.counter(
    "placement_guarantees_lost_total", "Guaranteed deadlines that cannot be kept any more."
)
QUEUED: Final = metrics.gauge("placement_queued_jobs", "Jobs that wait to be placed.")
LIVE: Final = metrics.gauge("placement_live_attempts", "Attempts that have not ended.")
LAG: Final = metrics.gauge(
    "placement_stream_lag_decisions",
    "Decisions that a cluster's agent has not acknowledged.",
    ("cluster",),
)
SILENT: Final = metrics.gauge(
    "placement_cluster_silent_seconds", "Silence counted of a cluster.", ("cluster",)
)
UNPUBLISHED: Final = metrics.counter(
    "placement_unpublished_decisions_total", "Decisions that dispatch had to read from the store."
)
RELOADS: Final = metrics.counter(
    "placement_reloads_total", "Times everything was loaded anew after an unknown outcome."
)
LEDGER_DIFFERENCES: Final = metrics.gauge(
    "placement_ledger_differences_count", "Differences between ledger and rows at the last audit."
)

FORECAST_SECONDS: Final = metrics.histogram(
    "placement_forecast_seconds", "A forecast of when all queued jobs start, beside the cycles."
)
FORECASTS_FAILED: Final = metrics.counter(
    "placement_forecasts_failed_total", "Forecasts that could not be made."
)
ETA_COVERAGE: Final = metrics.gauge(
    "placement_eta_coverage_ratio",
    "Part of the last 1,000 jobs that had to wait and had started by what they were told.",
    ("level",),
)
ETA_ERROR: Final = metrics.gauge(
    "placement_eta_error_seconds", "Mean distance of those starts from the p50 that was told."
)
ETA_SEEN: Final = metrics.gauge(
    "placement_eta_starts_count", "Starts that forecasts were compared with so far."
)

_LATENCIES: Final[deque[float]] = deque(maxlen=10_000)
_PLACED: Final = {
    waited: PLACED_SECONDS.labels(word) for waited, word in ((False, "no"), (True, "yes"))
}
_counted = Counters()
_states: dict[ClusterName, ClusterState] = {}


def leads() -> None:
    """This replica leads from now on."""
    LEADING.set(1)


def stands_by() -> None:
    """This replica leads no more: what it knew of the shard is not told any longer."""
    LEADING.set(0)
    for gauge in (QUEUED, LIVE, WINDOWS, LEDGER_DIFFERENCES, ETA_ERROR, ETA_SEEN):
        gauge.set(0)
    for gauge in (LAG, SILENT, ETA_COVERAGE):
        gauge.clear()
    _states.clear()


def observe(leader: Leader, committed: Committed | None) -> None:
    """Take the numbers of one cycle."""
    QUEUED.set(leader.memory.world.pending_count)
    LIVE.set(len(leader.memory.live))
    WINDOWS.set(leader.memory.world.window_count)
    _count(leader.counters)
    while leader.refusals:
        _tell_refusal(leader, leader.refusals.popleft())
    while leader.sizing.lost:
        _tell_lost(leader.sizing.lost.popleft())
    if committed is None:
        return
    PLACEMENTS.inc(len(committed.placed))
    DROPPED.inc(len(committed.dropped))
    for placed in committed.placed:
        _observe_placed(placed, waited=placed.placement.job not in committed.prompt)


def observe_forecast(leader: Leader, took_s: float) -> None:
    """Take the numbers of one forecast."""
    FORECAST_SECONDS.observe(took_s)
    covered = leader.foresight.record.coverage()
    ETA_SEEN.set(covered.count)
    if covered.count:
        ETA_ERROR.set(covered.error_s)
        for level, within in zip(LEVELS, covered.within, strict=True):
            ETA_COVERAGE.labels(f"p{level * 100:.0f}").set(within)


def observe_clusters(leader: Leader) -> None:
    """Take the numbers of all clusters; one that was forgotten has none any more."""
    clusters = leader.memory.clusters.values()
    here = {c.name: c for c in clusters if c.state is not ClusterState.RETIRED}
    for gone in _states.keys() - here.keys():
        LAG.remove(gone)
        SILENT.remove(gone)
        del _states[gone]
    for cluster in here.values():
        LAG.labels(cluster.name).set(cluster.head_seq - cluster.acked_seq)
        SILENT.labels(cluster.name).set(cluster.silent_s)
        _tell_state(cluster)


def percentiles_ms() -> list[float]:
    """50th, 95th and 99th percentile of submit to placed, of the last 10,000; empty at first."""
    ranked = sorted(_LATENCIES)
    return [ranked[int(share * (len(ranked) - 1))] * 1e3 for share in (0.5, 0.95, 0.99) if ranked]


def _observe_placed(placed: Placed, *, waited: bool) -> None:
    placement, attempt = placed.placement, placed.attempt
    begun, ended = placement.submitted_at, attempt.created_at
    own = job_trace(placement.trace, placement.job)
    _PLACED[waited].observe(ended - begun)
    _LATENCIES.append(ended - begun)
    tracing.record(
        "placement.place",
        parent=own,
        start_ns=int(begun * 1e9),
        end_ns=int(ended * 1e9),
        attributes={"atoll.cluster": attempt.cluster, "atoll.job": placement.job},
    )
    log.debug(
        "placed",
        job_id=placement.job,
        attempt_id=attempt.id,
        cluster=attempt.cluster,
        number=attempt.number,
        **tracing.log_ids(own),
    )


def _tell_refusal(leader: Leader, refusal: Rejection) -> None:
    if refusal.attempt is None:
        return
    job = job_of(refusal.attempt)
    pending = leader.memory.world.pending(job)
    log.info(
        "rolled back",
        job_id=job,
        attempt_id=refusal.attempt,
        cluster=refusal.cluster,
        nodes=list(refusal.nodes),
        **tracing.log_ids(job_trace(pending.trace, job) if pending else ""),
    )


def _tell_lost(lost: Lost) -> None:
    GUARANTEES_LOST.inc()
    log.warning(
        "guarantee lost",
        job_id=lost.broken.job,
        why=lost.cause,
        deadline_at=lost.broken.deadline_at,
        earliest_at=lost.broken.earliest_at,
    )


def _tell_state(cluster: Cluster) -> None:
    before = _states.get(cluster.name, ClusterState.ACTIVE)
    _states[cluster.name] = cluster.state
    if cluster.state is not before:
        expected = ClusterState.BOOTING in (before, cluster.state)
        (log.info if expected else log.warning)(
            "cluster changed its state",
            cluster=cluster.name,
            state=cluster.state,
            silent_s=round(cluster.silent_s, 1),
        )


def _count(now: Counters) -> None:
    """Take over what the leader counted; a new term counts from zero."""
    global _counted  # noqa: PLW0603 - a counter can only be told of increments
    ROLLBACKS.inc(max(0, now.rollbacks - _counted.rollbacks))
    LOST.inc(max(0, now.lost - _counted.lost))
    PREEMPTED.inc(max(0, now.preempted - _counted.preempted))
    BOOKED.inc(max(0, now.booked - _counted.booked))
    REBOOKED.inc(max(0, now.rebooked - _counted.rebooked))
    RESIZED.inc(max(0, now.resized - _counted.resized))
    _counted = replace(now)
