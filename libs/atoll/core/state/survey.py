"""The whole queue in short: some jobs of each class, and how many stand between them.

A forecast needs the course of every class, not every job: a class of a million
jobs is told by a few of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.freezing import queue_view
from atoll.core.state.heads import Heads, heads
from atoll.core.state.job_queue import JobClass, JobQueue
from atoll.core.state.run_times import RunTimesView
from atoll.core.state.snapshot import ClassView, Snapshot

Ints = NDArray[np.int64]
FIRST: Final = 16
"""Jobs at the head of a class that are shown, one by one; fewer where classes are many."""
SAMPLED: Final = 8
"""Jobs of a longer class that are shown besides, from all of it."""
SHOWN: Final = 8192
"""Jobs in all, about."""
LEAST: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """C classes, of which J jobs are shown."""

    snapshot: Snapshot
    """Its queue has all classes that wait for room, and of them the shown jobs."""
    place: Ints
    """(J) jobs of its class that are before it."""
    total: Ints
    """(C) jobs of the class that could start, if there were room."""
    times: RunTimesView


class _Shown(NamedTuple):
    slots: Ints
    place: Ints
    of: Ints
    """Class."""


def survey(
    look: Snapshot,
    queue: JobQueue,
    classes: Sequence[tuple[JobClass, ClassView]],
    *,
    times: RunTimesView,
) -> Survey:
    """`look`: a snapshot without a queue; `classes`: those that are not empty."""
    groups = [group for group, _ in classes]
    without = np.array([hold.job.id for hold in look.holds], np.int64)
    size = max(LEAST, min(FIRST, SHOWN // max(len(groups), 1) - SAMPLED))
    first = heads(queue, groups, size, without=without)
    counts = np.diff(first.first)
    total = counts.copy()
    parts = [_Shown(first.slots, _within(first.first), np.repeat(np.arange(len(groups)), counts))]
    for at in np.flatnonzero(first.more).tolist():
        more, total[at] = _sample(queue, groups[at], at, shown=size)
        parts.append(more)
    shown = _ordered(queue, _Shown(*map(np.concatenate, zip(*parts, strict=True))))
    begin = np.zeros(len(groups) + 1, np.int64)
    np.cumsum(np.bincount(shown.of, minlength=len(groups)), out=begin[1:])
    views = tuple(view for _, view in classes)
    listed = queue_view(queue, views, Heads(shown.slots, begin, first.more))
    return Survey(replace(look, queue=listed), shown.place, total, times)


def _within(first: Ints) -> Ints:
    counts = np.diff(first)
    within: Ints = np.arange(first[-1]) - np.repeat(first[:-1], counts)
    return within


def _sample(queue: JobQueue, group: JobClass, at: int, *, shown: int) -> tuple[_Shown, int]:
    ids, places, size = group.fifo.sampled(SAMPLED)
    slots = queue.table.find(ids)
    here = (slots >= 0) & (queue.table.columns.group[slots] == group.number)
    total = min(group.live, size)
    # Ids that have left are spread evenly, for all that is known.
    place = np.maximum(places[here] * total // max(size, 1), shown)
    slots = slots[here]
    return _Shown(slots, place, np.full(len(slots), at, np.int64)), max(total, shown)


def _ordered(queue: JobQueue, shown: _Shown) -> _Shown:
    columns = queue.table.columns
    job, submitted = columns.job[shown.slots], columns.submitted_at[shown.slots]
    order = np.lexsort((shown.place, job, submitted, shown.of))
    slots = shown.slots[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = slots[1:] != slots[:-1]
    order = order[new]
    return _Shown(shown.slots[order], shown.place[order], shown.of[order])
