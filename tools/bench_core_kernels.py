"""Times class batches: what the kernel does for one class in a row, step by step."""

import ctypes
import ctypes.util
import time
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.board_kernels import Board
from atoll.core.engine.order_kernels import Forest, Line, head
from atoll.core.engine.run_kernels import LEFT, PLACED, Gangs, Quota, step
from atoll.core.engine.score_kernels import Scoring
from atoll.core.state.columns import Nodes
from atoll.core.state.statement_kernels import Journal

ROOM: Final = 1 << 21
_clock = ctypes.CDLL(ctypes.util.find_library("c")).clock_gettime
_clock.argtypes = (ctypes.c_int, ctypes.c_void_p)
_clock.restype = ctypes.c_int
_MONOTONIC: Final = time.CLOCK_MONOTONIC


class BatchClock:
    """Stands in for the engine's `run`, which is the same loop over the same steps."""

    def __init__(self) -> None:
        self._ns = np.zeros(ROOM, np.int64)
        self._count = np.zeros(1, np.int64)
        self._time = np.zeros(2, np.int64)

    def run(self, *arguments: Any) -> tuple[int, int]:
        """As `run_kernels.run`, with its arguments."""
        watch = (self._ns, self._count, self._time)
        return _run(*(*arguments, watch))

    def clear(self) -> None:
        """Forget all batches."""
        self._count[0] = 0

    def percentiles(self) -> dict[str, float]:
        """Microseconds of the batches so far."""
        taken = self._ns[: min(ROOM, int(self._count[0]))] / 1000.0
        return {f"p{p}_us": round(float(np.percentile(taken, p)), 1) for p in (99, 50)}


@njit(nogil=True)
def _run(
    nodes: Nodes,
    scoring: Scoring,
    board: Board,
    line: Line,
    forest: Forest,
    gangs: Gangs,
    quota: Quota,
    journal: Journal,
    budget: int,
    watch: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
) -> tuple[int, int]:
    ns, count, now = watch
    placed, last, start = 0, -1, _read(now)
    while True:
        group = head(forest)
        if group != last:
            # The batch of another class begins.
            at = _read(now)
            if last >= 0:
                ns[count[0] % ROOM] = at - start
                count[0] += 1
            last, start = -1, at
        told = step(nodes, scoring, board, line, forest, gangs, quota, journal, placed == budget)
        if told == PLACED:
            placed += 1
            last = group
        elif told != LEFT:
            return told, placed
        else:
            last = -1


@njit(nogil=True)
def _read(now: NDArray[np.int64]) -> int:
    _clock(_MONOTONIC, now.ctypes)
    return int(now[0] * 1_000_000_000 + now[1])
