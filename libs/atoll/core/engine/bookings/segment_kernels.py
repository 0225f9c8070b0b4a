"""What holds nodes over time, compiled: windows, guarantees and runs as pieces of one node each.

A piece holds its node in [start, end). A run that can be stopped has two ends: `end`, by which it
can be gone, and `soft`, by which it is gone if nobody stops it.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.state.columns import Nodes
from atoll.core.state.compiled import bare

NOTHING: Final = -1
ALL_BITS: Final = 511
"""Every slice of a device, and its media engine."""


class Segments(NamedTuple):
    """S pieces, those of a node linked to a list. Times are unix seconds."""

    next: NDArray[np.int64]
    """The next one of the same node, NOTHING at the end."""
    row: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    soft: NDArray[np.float64]
    rank: NDArray[np.int64]
    """Priority of the booking; TOP for what no booking overrides."""
    item: NDArray[np.int64]
    """Number of the booking or guarantee; of runs -1 - number."""
    cpu: NDArray[np.int64]
    memory: NDArray[np.int64]
    whole: NDArray[np.bool_]
    hidden: NDArray[np.bool_]
    """Taken as not there, for now."""
    devices: NDArray[np.float64]
    """Of all that belongs to it, on all its nodes; so are the next three."""
    since: NDArray[np.float64]
    most_lost: NDArray[np.float64]
    restart: NDArray[np.float64]
    blocks: NDArray[np.int16]
    """(S, D)."""
    bits: NDArray[np.int16]
    """(S, D)."""


class View(NamedTuple):
    """Which pieces count."""

    floor: int
    """Those of at least this rank."""
    soft: bool
    """Runs count until they end by themselves."""


@bare
def counts(segs: Segments, seg: int, view: View, start: float, end: float) -> bool:
    """Whether a piece counts and reaches into [start, end)."""
    until = segs.soft[seg] if view.soft else segs.end[seg]
    seen = not segs.hidden[seg] and segs.rank[seg] >= view.floor
    return bool(seen and segs.start[seg] < end and until > start)


@bare
def collect(
    segs: Segments, first: int, view: View, start: float, end: float, found: NDArray[np.int64]
) -> int:
    """Write the pieces of a list that count in [start, end) to `found`; their number."""
    count, seg = 0, first
    while seg != NOTHING:
        if counts(segs, seg, view, start, end):
            found[count] = seg
            count += 1
        seg = segs.next[seg]
    return count


@njit(cache=True, nogil=True)
def link(segs: Segments, head: NDArray[np.int64], new: NDArray[np.int64]) -> None:
    """Enter pieces into the lists of their nodes; those whose node is not there are left out."""
    for seg in new:
        row = segs.row[seg]
        if row != NOTHING:
            segs.next[seg] = head[row]
            head[row] = seg


@njit(cache=True, nogil=True)
def unlink(segs: Segments, head: NDArray[np.int64], gone: NDArray[np.int64]) -> None:
    """Take pieces out of the lists of their nodes."""
    for seg in gone:
        row = segs.row[seg]
        if row == NOTHING:
            continue
        if head[row] == seg:
            head[row] = segs.next[seg]
            continue
        at = head[row]
        while segs.next[at] != seg:
            at = segs.next[at]
        segs.next[at] = segs.next[seg]


@njit(cache=True, nogil=True)
def longest(segs: Segments, head: NDArray[np.int64], rows: NDArray[np.int64]) -> int:
    """Pieces of the node that has most of them."""
    most = 0
    for row in rows:
        count, seg = 0, head[row]
        while seg != NOTHING:
            count += 1
            seg = segs.next[seg]
        most = max(most, count)
    return most


@njit(cache=True, nogil=True)
def room(
    segs: Segments,
    head: NDArray[np.int64],
    nodes: Nodes,
    out: Nodes,
    busy: NDArray[np.bool_],
    rows: NDArray[np.int64],
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    view: View,
) -> None:
    """What is free of nodes through all of some spans, written to the free columns of `out`.

    `nodes`: capacities. `busy`: (N) True where anything counts. Only `rows` are written.
    """
    wide = nodes.model.shape[1]
    size = longest(segs, head, rows)
    found, by_end = np.zeros(size, np.int64), np.zeros(size, np.int64)
    now, peak = np.zeros(2 + wide, np.int64), np.zeros(2 + wide, np.int64)
    for row in rows:
        _reset(nodes, out, row)
        busy[row] = False
        peak[:] = 0
        for k in range(starts.shape[0]):
            count = collect(segs, head[row], view, starts[k], ends[k], found)
            if count:
                busy[row] = True
                _peaks(segs, found, by_end, count, view, now, peak)
                _mark(segs, found, count, nodes, out, row)
        if busy[row]:
            _lower(out, row, peak)


@bare
def _reset(nodes: Nodes, out: Nodes, row: int) -> None:
    out.cpu_free[row] = nodes.cpu_cap[row]
    out.memory_free[row] = nodes.memory_cap[row]
    for device in range(nodes.model.shape[1]):
        out.blocks_free[row, device] = nodes.blocks_cap[row, device]
        out.slices[row, device] = 0


@bare
def _peaks(
    segs: Segments,
    found: NDArray[np.int64],
    by_end: NDArray[np.int64],
    count: int,
    view: View,
    now: NDArray[np.int64],
    peak: NDArray[np.int64],
) -> None:
    """Raise `peak` (CPU, memory, blocks by device) to the most that is held at once."""
    until = segs.soft if view.soft else segs.end
    for i in range(count):
        by_end[i] = found[i]
    _sort(found, count, segs.start)
    _sort(by_end, count, until)
    now[:] = 0
    over = 0
    for i in range(count):
        while until[by_end[over]] <= segs.start[found[i]]:
            _count(segs, by_end[over], now, -1)
            over += 1
        _count(segs, found[i], now, 1)
        for at in range(now.shape[0]):
            peak[at] = max(peak[at], now[at])


@bare
def _count(segs: Segments, seg: int, now: NDArray[np.int64], sign: int) -> None:
    now[0] += sign * segs.cpu[seg]
    now[1] += sign * segs.memory[seg]
    for device in range(now.shape[0] - 2):
        now[2 + device] += sign * segs.blocks[seg, device]


@bare
def _mark(
    segs: Segments, found: NDArray[np.int64], count: int, nodes: Nodes, out: Nodes, row: int
) -> None:
    """Take slices, and all of a node that somebody has as a whole."""
    for i in range(count):
        seg = found[i]
        for device in range(nodes.model.shape[1]):
            out.slices[row, device] |= ALL_BITS if segs.whole[seg] else segs.bits[seg, device]
        if segs.whole[seg]:
            out.cpu_free[row] = min(0, out.cpu_free[row])
            out.memory_free[row] = min(0, out.memory_free[row])


@bare
def _lower(out: Nodes, row: int, peak: NDArray[np.int64]) -> None:
    if out.cpu_free[row] > 0 or out.memory_free[row] > 0:
        out.cpu_free[row] -= peak[0]
        out.memory_free[row] -= peak[1]
    for device in range(peak.shape[0] - 2):
        out.blocks_free[row, device] -= peak[2 + device]


@bare
def _sort(found: NDArray[np.int64], count: int, key: NDArray[np.float64]) -> None:
    for i in range(1, count):
        seg, j = found[i], i - 1
        while j >= 0 and key[found[j]] > key[seg]:
            found[j + 1] = found[j]
            j -= 1
        found[j + 1] = seg


@njit(cache=True, nogil=True)
def costs(
    segs: Segments,
    head: NDArray[np.int64],
    rows: NDArray[np.int64],
    start: float,
    end: float,
    view: View,
    all_of_it: View,
) -> NDArray[np.float64]:
    """(rows) device-seconds of what counts by `all_of_it` in a span and not by `view`."""
    cost = np.zeros(rows.shape[0], np.float64)
    for i in range(rows.shape[0]):
        seg = head[rows[i]]
        while seg != NOTHING:
            given = counts(segs, seg, all_of_it, start, end)
            if given and not counts(segs, seg, view, start, end):
                cost[i] += loss(segs, seg, start)
            seg = segs.next[seg]
    return cost


@bare
def loss(segs: Segments, seg: int, at: float) -> float:
    """Device-seconds that are lost, or come later, when what a piece belongs to ends at `at`."""
    lost = min(max(0.0, at - segs.since[seg]), segs.most_lost[seg])
    return float(max(1.0, segs.devices[seg]) * (lost + segs.restart[seg]))


@njit(cache=True, nogil=True)
def pieces(
    segs: Segments,
    head: NDArray[np.int64],
    rows: NDArray[np.int64],
    start: float,
    end: float,
    view: View,
    without: View,
) -> NDArray[np.int64]:
    """Pieces on some nodes that count in a span by `view` and not by `without`."""
    found = np.zeros(16, np.int64)
    made = 0
    for row in rows:
        seg = head[row]
        while seg != NOTHING:
            seen = counts(segs, seg, view, start, end)
            if seen and not counts(segs, seg, without, start, end):
                if made == found.shape[0]:
                    found = np.append(found, np.zeros(made, np.int64))
                found[made] = seg
                made += 1
            seg = segs.next[seg]
    return found[:made]
