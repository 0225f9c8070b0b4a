"""From when to when a window could start, as far as counting devices tells, compiled.

A whole device is free for a window of length L that starts at t unless a piece [a, b) holds some
of it with a - L < t < b. So every piece is made longer by L, and what is free at t by these is
what is free for all of a window from t on. Of parts of devices only what is held at t itself
counts: then the answer is too good rather than too bad, and is tried afterwards.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.bookings.segment_kernels import Segments, View, collect, longest
from atoll.core.state.columns import ANY, MODE_BLOCKS, Models, Nodes
from atoll.core.state.compiled import bare

COUNT_NODES: Final = 0
"""A node counts when nothing of it is held."""
COUNT_WHOLE: Final = 1
COUNT_PARTS: Final = 2
_DEVICE: Final = 100
"""Blocks of a whole device."""


class Counted(NamedTuple):
    """What is counted: units of `shares` whole devices, or of `blocks` of one device, or nodes."""

    form: int
    """One of COUNT_*."""
    kind: int
    """Number of the device kind, ANY for any."""
    shares: int
    blocks: int
    memory: int
    """Bytes of a device; with it, `blocks` follow."""
    need: int
    """Units."""


class Starts(NamedTuple):
    """When at least `need` units are free, group by group and in order."""

    group: NDArray[np.int64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    """The last start that will do, itself included."""


@njit(cache=True, nogil=True)
def starts(
    segs: Segments,
    head: NDArray[np.int64],
    nodes: Nodes,
    models: Models,
    rows: NDArray[np.int64],
    bounds: NDArray[np.int64],
    counted: Counted,
    length: float,
    earliest: float,
    latest: float,
    view: View,
) -> Starts:
    """Spans of starts in [earliest, latest], for each group of nodes.

    Group g has rows bounds[g] up to bounds[g + 1].
    """
    wide = nodes.model.shape[1]
    size = longest(segs, head, rows)
    found = np.zeros(size, np.int64)
    change, who = np.zeros(2 * size, np.float64), np.zeros(2 * size, np.int64)
    # Behind the devices: how many pieces there are.
    busy, held = np.zeros(wide + 1, np.int64), np.zeros(wide, np.int64)
    longer = 0.0 if counted.form == COUNT_PARTS else length
    at, delta = np.zeros(64, np.float64), np.zeros(64, np.int64)
    groups = bounds.shape[0] - 1
    out_group = np.zeros(groups + 8, np.int64)
    out_first, out_last = np.zeros(groups + 8, np.float64), np.zeros(groups + 8, np.float64)
    made = 0
    for group in range(groups):
        events, base = 0, 0
        for i in range(bounds[group], bounds[group + 1]):
            if events + 2 * size > at.shape[0]:
                more = at.shape[0] + 2 * size
                at, delta = (
                    np.append(at, np.zeros(more)),
                    np.append(delta, np.zeros(more, np.int64)),
                )
            count = collect(segs, head[rows[i]], view, earliest, latest + length, found)
            units, events = _sweep(
                segs, nodes, models, rows[i], counted, longer, earliest, latest, view,
                found, count, change, who, busy, held, at, delta, events,
            )  # fmt: skip
            base += units
        if made + events + 1 > out_group.shape[0]:
            more = made + events + 1
            out_group = np.append(out_group, np.zeros(more, np.int64))
            out_first = np.append(out_first, np.zeros(more))
            out_last = np.append(out_last, np.zeros(more))
        order = np.argsort(at[:events])
        made = _spans(
            at, delta, order, base, counted.need, earliest, latest,
            group, out_group, out_first, out_last, made,
        )  # fmt: skip
    for span in range(made):
        out_last[span] = min(latest, np.nextafter(out_last[span], -np.inf))
    return Starts(out_group[:made], out_first[:made], out_last[:made])


@bare
def _spans(
    at: NDArray[np.float64],
    delta: NDArray[np.int64],
    order: NDArray[np.int64],
    free: int,
    need: int,
    earliest: float,
    latest: float,
    group: int,
    out_group: NDArray[np.int64],
    out_first: NDArray[np.float64],
    out_last: NDArray[np.float64],
    made: int,
) -> int:
    """Write the spans in which `free` and the changes since are `need` at least."""
    since, i, begun = earliest, 0, made
    while True:
        until = at[order[i]] if i < order.shape[0] else np.inf
        if free >= need and until > since:
            # Spans that touch are one.
            if made == begun or out_last[made - 1] != since:
                out_group[made], out_first[made] = group, since
                made += 1
            out_last[made - 1] = until
        if until == np.inf:
            break
        since = until
        while i < order.shape[0] and at[order[i]] == until:
            free += delta[order[i]]
            i += 1
    return made


@njit(cache=True, nogil=True)
def _sweep(
    segs: Segments,
    nodes: Nodes,
    models: Models,
    row: int,
    counted: Counted,
    longer: float,
    earliest: float,
    latest: float,
    view: View,
    found: NDArray[np.int64],
    count: int,
    change: NDArray[np.float64],
    who: NDArray[np.int64],
    busy: NDArray[np.int64],
    held: NDArray[np.int64],
    at: NDArray[np.float64],
    delta: NDArray[np.int64],
    events: int,
) -> tuple[int, int]:
    """Units of a node that are free at `earliest`, and the changes after it behind `events`."""
    busy[:] = 0
    held[:] = 0
    changes = 0
    for i in range(count):
        seg = found[i]
        # A window may end just when the piece begins.
        begin = np.nextafter(segs.start[seg] - longer, np.inf) if longer > 0 else segs.start[seg]
        until = segs.soft[seg] if view.soft else segs.end[seg]
        if begin <= earliest:
            _hold(segs, seg, busy, held, 1)
        elif begin <= latest:
            change[changes], who[changes] = begin, seg + 1
            changes += 1
        if begin <= latest and until <= latest:
            change[changes], who[changes] = until, -seg - 1
            changes += 1
    units = _units(nodes, models, row, counted, busy, held)
    first = units
    order = np.argsort(change[:changes])
    for c in range(changes):
        seg = abs(who[order[c]]) - 1
        _hold(segs, seg, busy, held, 1 if who[order[c]] > 0 else -1)
        time = change[order[c]]
        if c + 1 < changes and change[order[c + 1]] == time:
            continue
        now = _units(nodes, models, row, counted, busy, held)
        if now != units:
            at[events], delta[events] = time, now - units
            events += 1
            units = now
    return first, events


@bare
def _hold(
    segs: Segments, seg: int, busy: NDArray[np.int64], held: NDArray[np.int64], sign: int
) -> None:
    wide = held.shape[0]
    busy[wide] += sign
    for device in range(wide):
        if segs.whole[seg] or segs.blocks[seg, device] > 0 or segs.bits[seg, device] != 0:
            busy[device] += sign
        held[device] += sign * (_DEVICE if segs.whole[seg] else segs.blocks[seg, device])


@bare
def _units(
    nodes: Nodes,
    models: Models,
    row: int,
    counted: Counted,
    busy: NDArray[np.int64],
    held: NDArray[np.int64],
) -> int:
    if counted.form == COUNT_NODES:
        return 1 if busy[held.shape[0]] == 0 else 0
    free = 0
    for device in range(held.shape[0]):
        model = nodes.model[row, device]
        kind = counted.kind
        fits = kind == ANY or kind == models.kind[model]
        if model == 0 or not fits or models.mode[model] & MODE_BLOCKS == 0:
            continue
        if counted.form == COUNT_WHOLE:
            free += busy[device] == 0 and nodes.blocks_cap[row, device] == _DEVICE
        else:
            blocks = counted.blocks
            if counted.memory > 0:
                blocks = -(-_DEVICE * counted.memory // max(1, models.memory[model]))
            free += max(0, nodes.blocks_cap[row, device] - held[device]) // max(1, blocks)
    return free // counted.shares if counted.form == COUNT_WHOLE else free
