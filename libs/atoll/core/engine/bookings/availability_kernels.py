"""What is booked, held and free of a cluster over time, compiled."""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.bookings.segment_kernels import NOTHING, Segments, View, counts
from atoll.core.state.columns import MODE_MIG, Nodes
from atoll.core.state.compiled import bare
from atoll.core.state.fit_kernels import Hardware, ones

BOOKED: Final = 0
RUNNING: Final = 1
BARRED: Final = 2
"""Booked, or held by what cannot be stopped."""
FREE: Final = 2
_SLICES: Final = 255
_LITTLE: Final = 1e-9
"""Of a cell, by which a bound may be off."""


@njit(cache=True, nogil=True)
def cells(
    segs: Segments,
    head: NDArray[np.int64],
    nodes: Nodes,
    hardware: Hardware,
    rows: NDArray[np.int64],
    kinds: int,
    start: float,
    step: float,
    count: int,
    view: View,
) -> NDArray[np.float64]:
    """(3, kinds + 1, count) in every cell the most of BOOKED and RUNNING, and the least of FREE.

    In devices by kind, and behind these in nodes. Cell c begins at start + c * step.
    """
    shown = _blank(kinds + 1, count)
    now, offered = np.zeros((3, kinds + 1)), np.zeros(kinds + 1)
    amount = np.zeros(kinds + 1)
    times, which = np.zeros(64), np.zeros(64, np.int64)
    events, end = 0, start + step * count
    for row in rows:
        _offer(nodes, hardware, row, offered)
        seg = head[row]
        while seg != NOTHING:
            if counts(segs, seg, view, start, end):
                if events + 3 > times.shape[0]:
                    more = times.shape[0]
                    times = np.append(times, np.zeros(more))
                    which = np.append(which, np.zeros(more, np.int64))
                times[events], which[events] = segs.start[seg], 3 * seg
                times[events + 1], which[events + 1] = segs.end[seg], 3 * seg + 1
                times[events + 2], which[events + 2] = segs.soft[seg], 3 * seg + 2
                events += 3
            seg = segs.next[seg]
    order = np.argsort(times[:events])
    since = start
    for at in order:
        until = min(times[at], end)
        if until > since:
            _show(shown, now, offered, (since - start) / step, (until - start) / step)
            since = until
        seg = which[at] // 3
        _measure(segs, nodes, hardware, seg, amount)
        _change(now, amount, which[at] % 3, segs.item[seg] < 0)
    if end > since:
        _show(shown, now, offered, (since - start) / step, float(count))
    return shown


@njit(cache=True, nogil=True)
def _blank(columns: int, count: int) -> NDArray[np.float64]:
    shown = np.zeros((3, columns, count))
    shown[FREE] = np.inf
    return shown


@bare
def _offer(nodes: Nodes, hardware: Hardware, row: int, offered: NDArray[np.float64]) -> None:
    models = hardware.models
    offered[offered.shape[0] - 1] += 1.0
    for device in range(nodes.model.shape[1]):
        model = nodes.model[row, device]
        if model != 0:
            sliced = models.mode[model] == MODE_MIG
            part = 1.0 if sliced else max(0, nodes.blocks_cap[row, device]) / 100
            offered[models.kind[model]] += part


@bare
def _measure(
    segs: Segments, nodes: Nodes, hardware: Hardware, seg: int, amount: NDArray[np.float64]
) -> None:
    """Devices of a piece by kind, and the part of its node that it has."""
    amount[:] = 0.0
    models, cuts, row = hardware.models, hardware.cuts, segs.row[seg]
    whole = segs.whole[seg]
    cpu = max(1, nodes.cpu_cap[row])
    amount[amount.shape[0] - 1] = 1.0 if whole else min(1.0, segs.cpu[seg] / cpu)
    for device in range(nodes.model.shape[1]):
        model = nodes.model[row, device]
        if model == 0:
            continue
        part = 1.0 if whole else segs.blocks[seg, device] / 100
        if not whole and segs.bits[seg, device] != 0:
            # The profile that takes all of it tells how many slices there are.
            most = 1
            for profile in range(cuts.mask.shape[2]):
                most = max(most, ones(cuts.mask[models.cut[model], 0, profile] & _SLICES))
            part = ones(segs.bits[seg, device] & _SLICES) / most
        amount[models.kind[model]] += part


@bare
def _change(
    now: NDArray[np.float64], amount: NDArray[np.float64], event: int, is_run: bool
) -> None:
    for k in range(amount.shape[0]):
        if event == 0:
            now[BARRED, k] += amount[k]
            now[RUNNING if is_run else BOOKED, k] += amount[k]
        elif event == 1:
            now[BARRED, k] -= amount[k]
        else:
            now[RUNNING if is_run else BOOKED, k] -= amount[k]


@bare
def _show(
    shown: NDArray[np.float64],
    now: NDArray[np.float64],
    offered: NDArray[np.float64],
    since: float,
    until: float,
) -> None:
    first, last = int(since + _LITTLE), min(shown.shape[2], int(np.ceil(until - _LITTLE)))
    for k in range(offered.shape[0]):
        free = max(0.0, offered[k] - now[BARRED, k])
        for cell in range(first, last):
            shown[BOOKED, k, cell] = max(shown[BOOKED, k, cell], now[BOOKED, k])
            shown[RUNNING, k, cell] = max(shown[RUNNING, k, cell], now[RUNNING, k])
            shown[FREE, k, cell] = min(shown[FREE, k, cell], free)
