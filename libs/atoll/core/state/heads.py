"""The jobs at the heads of many classes, found together: the cost is per job, not per class."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import MAX_ATTEMPTS
from atoll.core.state.job_queue import JobClass, JobQueue
from atoll.core.state.pending import Ints

Bools = NDArray[np.bool_]
_NOBODY = np.zeros(0, np.int64)


class Heads(NamedTuple):
    """Jobs at the heads of C classes, in order inside each."""

    slots: Ints
    first: Ints
    """(C + 1) offsets into slots."""
    more: Bools
    """(C) there are jobs behind these."""


class _Windows(NamedTuple):
    """What may be at the heads: W ids of C classes."""

    ids: Ints
    of: Ints
    """(W) class."""
    in_order: Bools
    """(W) it came in order; others came late, and may belong anywhere."""
    main: Ints
    """(C) how many came in order."""
    more: Bools
    """(C) there are ids behind these."""


def heads(
    queue: JobQueue, classes: Sequence[JobClass], size: int, *, without: Ints = _NOBODY
) -> Heads:
    """The first jobs of every class, about `size` of each at most; some jobs are left out."""
    for group in classes:
        group.fifo.tidy(queue.table, group.number, group.live)
    numbers = np.array([group.number for group in classes], np.int64)
    while True:
        windows = _windows(classes, size)
        slots, of, in_order = _present(queue, windows, numbers)
        last = _last_in_order(of, in_order, len(classes))
        gone = np.flatnonzero(windows.more & (last < 0))
        if not len(gone):
            break
        for number in gone.tolist():
            classes[number].fifo.skip(int(windows.main[number]))
    # What came late may belong behind jobs that its window does not show.
    shown = ~windows.more[of] | (np.arange(len(of)) <= last[of])
    shown[1:] &= slots[1:] != slots[:-1]
    if len(without):
        shown &= ~np.isin(queue.table.columns.job[slots], without)
    first = np.zeros(len(classes) + 1, np.int64)
    np.cumsum(np.bincount(of[shown], minlength=len(classes)), out=first[1:])
    return Heads(slots[shown], first, windows.more)


def _windows(classes: Sequence[JobClass], size: int) -> _Windows:
    each = [group.fifo.window(size) for group in classes]
    ids = np.concatenate([ids for ids, _, _ in each]) if each else _NOBODY
    sizes = np.array([len(ids) for ids, _, _ in each], np.int64)
    main = np.array([count for _, count, _ in each], np.int64)
    begin = np.cumsum(sizes) - sizes
    of = np.repeat(np.arange(len(each)), sizes)
    in_order = np.arange(len(ids)) - begin[of] < main[of]
    return _Windows(ids, of, in_order, main, np.array([more for _, _, more in each], np.bool_))


def _present(queue: JobQueue, windows: _Windows, numbers: Ints) -> tuple[Ints, Ints, Bools]:
    columns = queue.table.columns
    slots = queue.table.find(windows.ids)
    here = (slots >= 0) & (columns.group[slots] == numbers[windows.of])
    here &= (columns.waits[slots] == 0) & (queue.table.begin_at(slots) <= queue.now)
    here &= columns.attempts[slots] < MAX_ATTEMPTS
    slots, of, in_order = slots[here], windows.of[here], windows.in_order[here]
    order = np.lexsort((columns.job[slots], columns.submitted_at[slots], of))
    return slots[order], of[order], in_order[order]


def _last_in_order(of: Ints, in_order: Bools, classes: int) -> Ints:
    last = np.full(classes, -1, np.int64)
    # Later ones overwrite earlier ones.
    last[of[in_order]] = np.flatnonzero(in_order)
    return last
