"""What the course of jobs has shown: the largest backlog, and who was promised a start."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import JobId
from atoll.core.model.plan import Promise
from atoll.core.state.backlog_kernels import Ended, empty_backlog, fade, note_runs
from atoll.core.state.job_queue import JobQueue
from atoll.core.state.ledger_kernels import Uses
from atoll.core.state.mig import UNITS_PER_DEVICE
from atoll.core.state.shares import CPU, DEVICES

HALF_LIFE_S: Final = 60 * 86_400.0


@dataclass(frozen=True, slots=True)
class PaceView:
    """What a snapshot shows of it."""

    promised: Mapping[JobId, Promise]
    """Starts that the last cycle promised, by the order of their jobs."""
    backlog_s: float
    """The largest backlog that was seen, as it counts now; 0: none yet."""


class Pace:
    """Of one world."""

    def __init__(self) -> None:
        self._backlog = empty_backlog()
        self._capacity = (0.0, 0.0)
        """Milli-CPU and devices."""
        self._promised: Mapping[JobId, Promise] = {}
        self._cleared: frozenset[JobId] = frozenset()

    def ended(self, runs: Ended, uses: Uses, *, now: float) -> None:
        """What held capacity is over; `uses`: what it held, one gang each."""
        note_runs(self._backlog, runs, uses, self._capacity, now, HALF_LIFE_S)

    def freeze(self, capacity: NDArray[np.float64], *, now: float) -> PaceView:
        """As it stands. `capacity`: what there is in all, by resource."""
        devices = float(capacity[DEVICES:].sum()) / UNITS_PER_DEVICE
        self._capacity = (float(capacity[CPU]), devices)
        return PaceView(self._promised, fade(self._backlog, now, HALF_LIFE_S))

    def promise(self, promises: Iterable[Promise], *, cleared: Iterable[JobId]) -> bool:
        """Replace all promises, and the jobs for whom nodes are cleared.

        True when nodes that were cleared are so no more.
        """
        self._promised = {promise.job: promise for promise in promises}
        before, self._cleared = self._cleared, frozenset(cleared)
        return bool(before - self._cleared)

    def gone(self, jobs: Iterable[JobId]) -> bool:
        """Jobs wait no more; True when nodes were cleared for one."""
        left = self._cleared.intersection(jobs)
        self._cleared -= left
        return bool(left)

    def classes(self, queue: JobQueue) -> frozenset[int]:
        """Numbers of the classes whose jobs were promised a start, or have nodes cleared."""
        slots = queue.table.find(np.array([*self._promised, *self._cleared], np.int64))
        return frozenset(queue.table.columns.group[slots[slots >= 0]].tolist())
