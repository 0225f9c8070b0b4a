"""Counts silence: an outage is not a death.

Silence is counted on the leader's own monotonic clock, only while it can read the store and sees a
live dispatch, and only after a grace of its own. It is persisted, so that a change of leaders does
not start it anew.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster, ClusterState

NOT_LISTENED_TO: Final = frozenset({
    ClusterState.BOOTING,
    ClusterState.RETIRED,
    ClusterState.QUARANTINED,
})
"""They have not joined, or never answer again."""


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """When silence matters, in seconds."""

    unschedulable_after_s: float
    lost_after_s: float
    takeover_grace_s: float
    """Nothing is counted for this long after a take-over."""
    longest_step_s: float
    """A longer gap between two looks counts only this much: the leader itself was away."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a look found for one cluster."""

    cluster: ClusterName
    state: ClusterState
    silent_s: float


@dataclass(slots=True)
class _Heard:
    last_seen: float
    silent_s: float


@dataclass(slots=True)
class SilenceWatch:
    """Counts the silence of all clusters of a shard. Times are monotonic seconds."""

    limits: SilenceLimits
    since: float
    """When this leader took over."""
    _looked_at: float = field(init=False)
    _heard: dict[ClusterName, _Heard] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._looked_at = self.since

    def look(
        self, clusters: Iterable[Cluster], *, now: float, dispatch_alive: bool
    ) -> list[Verdict]:
        """Verdicts for the clusters whose state or counted silence changed."""
        step = self._step(now, dispatch_alive=dispatch_alive)
        return [v for c in clusters if (v := self._judge(c, step)) is not None]

    def _step(self, now: float, *, dispatch_alive: bool) -> float:
        passed, self._looked_at = now - self._looked_at, now
        counts = dispatch_alive and now - self.since >= self.limits.takeover_grace_s
        return min(passed, self.limits.longest_step_s) if counts else 0.0

    def _judge(self, cluster: Cluster, step: float) -> Verdict | None:
        if cluster.state in NOT_LISTENED_TO:
            return None
        heard = self._heard.setdefault(
            cluster.name, _Heard(cluster.last_seen, silent_s=cluster.silent_s)
        )
        if cluster.last_seen == heard.last_seen:
            heard.silent_s += step
        else:
            heard.last_seen, heard.silent_s = cluster.last_seen, 0.0
        state = self._state(heard.silent_s)
        if state is cluster.state and heard.silent_s == cluster.silent_s:
            return None
        return Verdict(cluster.name, state, heard.silent_s)

    def _state(self, silent_s: float) -> ClusterState:
        if silent_s >= self.limits.lost_after_s:
            return ClusterState.LOST
        if silent_s >= self.limits.unschedulable_after_s:
            return ClusterState.SILENT
        return ClusterState.ACTIVE
