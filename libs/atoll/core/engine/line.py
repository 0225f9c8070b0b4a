"""Lines the queue up for the kernel: classes, their limits, and the shapes that they need."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.engine.forest import forest
from atoll.core.engine.limits import binding
from atoll.core.engine.masks import Key, Masks
from atoll.core.engine.memo import Wanted
from atoll.core.engine.order_kernels import Forest, Line, build_heaps
from atoll.core.engine.ranking import ranked
from atoll.core.engine.run_kernels import WAITING, Quota
from atoll.core.model.plan import GangRequest
from atoll.core.policies.interfaces import Patience, Policies, Ranks
from atoll.core.state.snapshot import ClassView, Snapshot

_Column = tuple[int, Key]
_Wanted = dict[_Column, tuple[int, Wanted]]


@dataclass(frozen=True, slots=True)
class Lineup:
    """The queue of a cycle."""

    snapshot: Snapshot
    """With the jobs of each class in order."""
    line: Line
    forest: Forest
    quota: Quota
    patience: Patience
    wanted: tuple[Wanted, ...]
    """Columns that the trees need; `line.column` holds their places in this until `point_to`."""


def line_up(
    snapshot: Snapshot, policies: Policies, masks: Masks, *, now: float, rng: Generator
) -> Lineup:
    """Everything that the kernel needs to go through the queue, but for the trees."""
    wanted: _Wanted = {}
    columns = [_columns(view, masks, wanted) for view in snapshot.queue.classes]
    snapshot, ranks = ranked(snapshot, policies.order, now=now, rng=rng)
    line = _line(snapshot, ranks, columns)
    queues = forest(snapshot, ranks.standing, np.flatnonzero(line.next < line.end))
    build_heaps(line, queues)
    limits = snapshot.limits
    quota = Quota(limits.kind, limits.used.copy(), limits.limit)
    wanted_columns = tuple(each for _, each in wanted.values())
    return Lineup(snapshot, line, queues, quota, ranks.patience, wanted_columns)


def point_to(line: Line, columns: Sequence[int]) -> None:
    """Turn places in `wanted` into columns of the trees."""
    line.column[:] = np.array(columns, np.int64)[line.column]


def is_single(request: GangRequest) -> bool:
    """True for one task that may go to any domain: the kernel places it by itself."""
    required = request.topology is not None and request.topology.required
    alone = len(request.groups) == 1 and request.groups[0].count == 1
    # The kernel knows nothing of where others of its name were placed a moment ago.
    return alone and not required and request.anti_affinity is None


def _columns(view: ClassView, masks: Masks, wanted: _Wanted) -> list[int]:
    if not is_single(view.request):
        return []
    numbers = []
    for shape in view.shapes[0]:
        value = masks.snapshot.task_shape(shape)
        column = (shape, masks.key(view.request, value))
        if column not in wanted:
            allowed = masks.allowed(view.request, value)
            wanted[column] = len(wanted), Wanted(value, shape, allowed)
        numbers.append(wanted[column][0])
    return numbers


def _line(snapshot: Snapshot, ranks: Ranks, columns: Sequence[Sequence[int]]) -> Line:
    queue = snapshot.queue
    first_column, column = _ragged(columns)
    first_limit, limit = _ragged([binding(view, snapshot) for view in queue.classes])
    return Line(
        outer=ranks.outer,
        inner=ranks.inner,
        key=ranks.key,
        job=queue.job,
        submitted_at=queue.submitted_at,
        next=queue.first[:-1].copy(),
        end=queue.first[1:].copy(),
        more=queue.more,
        state=np.full(len(queue.classes), WAITING, np.int8),
        first_column=first_column,
        column=column,
        first_limit=first_limit,
        limit=limit,
    )


def _ragged(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(each) for each in lists], out=first[1:])
    return first, np.array([number for each in lists for number in each], np.int64)
