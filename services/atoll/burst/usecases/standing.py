"""What runs and waits now, by kind of devices: sums that are kept as jobs come, move and end."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeVar

from atoll.core.model.burst import Instance
from atoll.core.model.ids import ClusterName, JobId
from atoll.ports.store.burst import Capacity
from atoll.ports.store.demand import DemandRow

K = TypeVar("K")


@dataclass(slots=True)
class Sum:
    """Of some jobs."""

    jobs: int = 0
    devices: float = 0.0


@dataclass(slots=True)
class Standing:
    """Every job is in it once: as it is, until it has ended."""

    runs: dict[tuple[str, ClusterName], Sum] = field(default_factory=lambda: defaultdict(Sum))
    waits: dict[str, Sum] = field(default_factory=lambda: defaultdict(Sum))
    """For room, by kind: those that would start now if there were some."""
    _later: list[tuple[float, JobId]] = field(default_factory=list)
    """A heap of those that wait for a time, or did."""
    _not_yet: dict[JobId, DemandRow] = field(default_factory=dict)
    """Those that wait for a time."""

    def enter(self, row: DemandRow, *, now: float) -> None:
        """A job is as this row says."""
        if row.started_at and not row.ended_at:
            _add(self.runs[row.kind, row.cluster], 1, row.devices)
        elif not row.ended_at and not row.waits:
            self._enter_line(row, now)

    def leave(self, row: DemandRow) -> None:
        """It is so no longer."""
        if row.started_at and not row.ended_at:
            _take(self.runs, (row.kind, row.cluster), row.devices)
        elif not row.ended_at and not row.waits and self._not_yet.pop(row.job, None) is None:
            _take(self.waits, row.kind, row.devices)

    def pass_time(self, now: float) -> None:
        """Those whose time has come wait for room from now on."""
        while self._later and self._later[0][0] <= now:
            at, job = heappop(self._later)
            row = self._not_yet.get(job)
            if row is not None and row.begin_at == at:
                del self._not_yet[job]
                _add(self.waits[row.kind], 1, row.devices)

    def spare(
        self, capacities: Sequence[Capacity], instances: Sequence[Instance]
    ) -> dict[str, int]:
        """Whole devices by kind that are idle, not rented, and that nobody waits for."""
        rented = {each.cluster for each in instances}
        left: dict[str, float] = defaultdict(float)
        for each in capacities:
            if not each.rented and each.kind:
                left[each.kind] += each.devices
        for (kind, cluster), taken in self.runs.items():
            if cluster not in rented:
                left[kind] -= taken.devices
        return {kind: int(n) for kind, n in left.items() if n >= 1 and kind not in self.waits}

    def _enter_line(self, row: DemandRow, now: float) -> None:
        if row.begin_at > now:
            self._not_yet[row.job] = row
            heappush(self._later, (row.begin_at, row.job))
        else:
            _add(self.waits[row.kind], 1, row.devices)


def _add(to: Sum, jobs: int, devices: float) -> None:
    to.jobs += jobs
    # Sums of parts of devices leave crumbs.
    to.devices = round(to.devices + devices, 6)


def _take(sums: dict[K, Sum], key: K, devices: float) -> None:
    _add(sums[key], -1, -devices)
    if not sums[key].jobs:
        del sums[key]
