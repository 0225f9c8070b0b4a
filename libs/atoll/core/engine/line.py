"""Lines the queue up for the kernel: classes, their limits, and the shapes that they need."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.engine.board import Wanted
from atoll.core.engine.domains import level_range
from atoll.core.engine.forest import forest
from atoll.core.engine.limits import binding
from atoll.core.engine.masks import Key, Masks
from atoll.core.engine.memo import Ready, WantedLane
from atoll.core.engine.order_kernels import Forest, Line, build_heaps
from atoll.core.engine.ranking import ranked
from atoll.core.engine.run_kernels import OUTSIDE, WAITING, Gangs, Quota
from atoll.core.engine.scoring import SLICES_PER_DEVICE
from atoll.core.model.plan import GangRequest
from atoll.core.policies.interfaces import Patience, Policies, Ranks, Standing
from atoll.core.state.columns import SHAPE_SHARES
from atoll.core.state.snapshot import ClassView, Snapshot

_Column = tuple[int, Key, int]
EVERYWHERE: Final = -1
"""Instead of a step of quick clusters."""


class _Asked:
    """Columns and lanes that classes ask for, each once."""

    def __init__(self, masks: Masks) -> None:
        self.columns: dict[_Column, int] = {}
        self.wanted: list[Wanted] = []
        self.lanes: dict[WantedLane, int] = {}
        self._masks = masks

    def column(self, view: ClassView, shape: int, step: int) -> int:
        """Place of a shape's column among those that are wanted; of a step's clusters alone."""
        value = self._masks.snapshot.task_shape(shape)
        place, mask = self._masks.keyed(view.request, value, view.queue)
        key = (shape, place, step)
        if key not in self.columns:
            self.columns[key] = len(self.wanted)
            if step != EVERYWHERE:
                mask = self._masks.narrowed(mask, step)
            self.wanted.append(Wanted(value, shape, mask))
        return self.columns[key]

    def lane(self, column: int, count: int) -> int:
        """Place of a gang's lane among those that are wanted."""
        return self.lanes.setdefault(WantedLane(column, count), len(self.lanes))


@dataclass(frozen=True, slots=True)
class Lineup:
    """The queue of a cycle."""

    snapshot: Snapshot
    """With the jobs of each class in order."""
    line: Line
    forest: Forest
    gangs: Gangs
    quota: Quota
    patience: Patience
    between: Standing | None
    """How borrowers are compared who give way to each other; None: they do not."""
    columns: tuple[Wanted, ...]
    """What the board needs; `line.column` holds places in this until `point_to`."""
    lanes: tuple[WantedLane, ...]
    """And these; `gangs.lane` holds places in them."""


def line_up(
    snapshot: Snapshot, policies: Policies, masks: Masks, *, now: float, rng: Generator
) -> Lineup:
    """Everything that the kernel needs to go through the queue, but for the board."""
    asked = _Asked(masks)
    columns = [_columns(view, asked, masks) for view in snapshot.queue.classes]
    snapshot, ranks = ranked(snapshot, policies.order, now=now, rng=rng)
    line = _line(snapshot, ranks, columns)
    queues = forest(snapshot, ranks.standing, np.flatnonzero(line.next < line.end))
    build_heaps(line, queues)
    limits = snapshot.limits
    quota = Quota(limits.kind, limits.used.copy(), limits.limit)
    gangs = _gangs(snapshot, columns, asked)
    wanted, lanes = tuple(asked.wanted), tuple(asked.lanes)
    between = ranks.standing if ranks.rebalances else None
    return Lineup(snapshot, line, queues, gangs, quota, ranks.patience, between, wanted, lanes)


def point_to(lineup: Lineup, ready: Ready) -> None:
    """Turn places in what was wanted into columns and lanes of the board."""
    line, gangs = lineup.line, lineup.gangs
    line.column[:] = np.array(ready.columns, np.int64)[line.column]
    inside = gangs.lane >= 0
    gangs.lane[inside] = np.array(ready.lanes, np.int64)[gangs.lane[inside]]
    if not ready.gathers:
        first = line.first_column[:-1][gangs.size > 0]
        gangs.size[gangs.size > 0] *= gangs.lane[first] < 0


def in_order(line: Line, wanted: NDArray[np.bool_]) -> list[int]:
    """Some classes (C) in the order of their next jobs."""
    groups = np.flatnonzero(wanted)
    head = np.minimum(line.next[groups], line.end[groups] - 1)
    order = np.lexsort((
        line.job[head],
        line.submitted_at[head],
        line.key[head],
        line.inner[head],
        line.outer[head],
    ))
    return [int(group) for group in groups[order]]


def in_kernel(request: GangRequest) -> bool:
    """True for one group of a fixed size and no further wishes: the kernel places it by itself."""
    group = request.groups[0]
    fixed = len(request.groups) == 1 and group.count == group.min_count
    # The kernel knows nothing of where others of its name were placed a moment ago.
    return fixed and group.spread is None and request.anti_affinity is None


def _is_single(request: GangRequest) -> bool:
    required = request.topology is not None and request.topology.required
    return request.groups[0].count == 1 and not required


def _columns(view: ClassView, asked: _Asked, masks: Masks) -> list[int]:
    if not in_kernel(view.request):
        return []
    # Where it would begin to run sooner is an alternative that comes first.
    turns = (*masks.quick(view), EVERYWHERE)
    return [asked.column(view, shape, step) for shape in view.shapes[0] for step in turns]


def _gangs(snapshot: Snapshot, columns: Sequence[Sequence[int]], asked: _Asked) -> Gangs:
    classes = snapshot.queue.classes
    counts = [v.request.groups[0].count if in_kernel(v.request) else OUTSIDE for v in classes]
    levels = [level_range(snapshot, view.request.topology) for view in classes]
    lanes = [
        -1 if _is_single(view.request) else asked.lane(column, count)
        for view, count, own in zip(classes, counts, columns, strict=True)
        for column in own
    ]
    most = SLICES_PER_DEVICE * snapshot.nodes.model.shape[1]
    return Gangs(
        size=np.array(counts, np.int64),
        first_level=np.array([first for first, _ in levels], np.int64),
        end_level=np.array([end for _, end in levels], np.int64),
        lane=np.array(lanes, np.int64),
        shares=np.array([min(most, int(snapshot.shapes[:, SHAPE_SHARES].max()))], np.int64),
    )


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
