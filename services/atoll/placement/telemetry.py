"""What placement measures of itself."""

from collections import deque
from typing import Final

from atoll.placement.usecases.commit import Committed, Placed
from atoll.placement.usecases.leader import Leader
from atoll.runtime import metrics, tracing

LEADING: Final = metrics.gauge("placement_leading_info", "1 while this replica leads its shard.")
CYCLE_SECONDS: Final = metrics.histogram(
    "placement_cycle_seconds", "A cycle, from catching up to the commit."
)
PLACED_SECONDS: Final = metrics.histogram(
    "job_placed_seconds",
    "From a job's submit to its placement, waits for capacity included.",
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
QUEUED: Final = metrics.gauge("placement_queued_jobs", "Jobs that wait to be placed.")
LIVE: Final = metrics.gauge("placement_live_attempts", "Attempts that have not ended.")
LAG: Final = metrics.gauge(
    "placement_stream_lag_decisions",
    "Decisions that a cluster's agent has not acknowledged.",
    ("cluster",),
)
CLUSTER_STATE: Final = metrics.gauge(
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

_LATENCIES: Final[deque[float]] = deque(maxlen=10_000)
_seen_rollbacks = 0


def observe(leader: Leader, committed: Committed | None) -> None:
    """Take the numbers of one cycle."""
    QUEUED.set(leader.memory.world.pending_count)
    LIVE.set(len(leader.memory.live))
    _count_rollbacks(leader)
    if committed is None:
        return
    PLACEMENTS.inc(len(committed.placed))
    DROPPED.inc(len(committed.dropped))
    for placed in committed.placed:
        _observe_placed(placed)


def observe_clusters(leader: Leader) -> None:
    """Take the numbers of all clusters."""
    for cluster in leader.memory.clusters.values():
        LAG.labels(cluster.name).set(cluster.head_seq - cluster.acked_seq)
        CLUSTER_STATE.labels(cluster.name).set(cluster.silent_s)


def percentiles_ms() -> list[float]:
    """50th, 95th and 99th percentile of submit to placed, of the last 10,000; empty at first."""
    ranked = sorted(_LATENCIES)
    return [ranked[int(share * (len(ranked) - 1))] * 1e3 for share in (0.5, 0.95, 0.99) if ranked]


def _observe_placed(placed: Placed) -> None:
    begun, ended = placed.placement.submitted_at, placed.attempt.created_at
    PLACED_SECONDS.observe(ended - begun)
    _LATENCIES.append(ended - begun)
    tracing.record(
        "placement.place",
        parent=placed.placement.trace,
        start_ns=int(begun * 1e9),
        end_ns=int(ended * 1e9),
        attributes={"atoll.cluster": placed.attempt.cluster, "atoll.job": placed.placement.job},
    )


def _count_rollbacks(leader: Leader) -> None:
    global _seen_rollbacks  # noqa: PLW0603 - a counter can only be told of increments
    ROLLBACKS.inc(max(0, leader.counters.rollbacks - _seen_rollbacks))
    _seen_rollbacks = leader.counters.rollbacks
