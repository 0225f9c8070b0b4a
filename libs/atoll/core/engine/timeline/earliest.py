"""When a blocked gang could start, where, and what of its place must be kept free until then.

The aggregate profile of the pool says when it could start at the earliest; from
there on the gang placer itself is asked, on nodes, devices and domains as they
will be when the runs before a time have ended. Only time limits count: a run
without one is not taken to end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.gangs import UNLIMITED
from atoll.core.engine.ground import Ask, Ground, ground
from atoll.core.engine.limits import binding
from atoll.core.engine.score_kernels import Scoring
from atoll.core.engine.timeline.loads import Loads
from atoll.core.engine.timeline.profile_kernels import Steps, find_hole, of_ends
from atoll.core.engine.windows.bookings import Booked
from atoll.core.state.columns import Nodes, scratch_copy
from atoll.core.state.ledger_kernels import Uses, give_gangs
from atoll.core.state.ragged import offsets
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.statement import Statement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOWHERE: Final = -1
MOVE_S: Final = 300.0
"""A reservation moves to another cluster only for a gain above this."""
MOST_LATER: Final = 24
"""Times that are tried after the one at which it would fit if nothing was booked."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where and when a gang could start."""

    start: float
    cluster: int
    uses: Uses
    """All that it will take."""
    kept: Uses
    """What of it is free already."""
    quota: Ints
    """(limits) what of their room it needs before others end, in 1/56 block."""
    runs_at: float
    """When it will run there: a slow cluster takes its time."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The nodes of all clusters as they are, and what holds them."""

    snapshot: Snapshot
    """`nodes`: what is free now."""
    scoring: Scoring
    loads: Loads
    used: Ints
    """(limits) in 1/56 block."""
    late_s: Floats
    """(clusters) how much later than elsewhere a job runs that starts there."""
    booked: Booked | None = None
    """Where bookings are in the way of the job; None: nowhere."""


def earliest(pool: Pool, ask: Ask, *, now: float, stays: int = NOWHERE) -> Iterator[Place]:
    """Places of which one is where it runs at the earliest of all clusters.

    That of cluster `stays` is among them if it is not later than the earliest by more than MOVE_S.
    Clusters are looked through in the order of their bounds: what cannot be free by the best time
    so far costs one try.
    """
    best = np.inf
    for search in sorted(_searches(pool, ask, now), key=lambda each: (each.runs_at, each.cluster)):
        slack = MOVE_S if search.cluster == stays else 0.0
        place = _earliest(pool, ask, search, now=now, by=best - search.late_s + slack)
        if place is not None:
            best = min(best, place.runs_at)
            yield place


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """One cluster, and when it could be free at the earliest."""

    cluster: int
    rows: Ints
    field: Ground
    ends: Floats
    """When the loads of the field end."""
    bound: float
    late_s: float

    @property
    def runs_at(self) -> float:
        """At the earliest."""
        return self.bound + self.late_s


def _searches(pool: Pool, ask: Ask, now: float) -> Iterator[_Search]:
    allowed = np.logical_or.reduce([*ask.masks.values()])
    cluster = pool.snapshot.nodes.cluster
    for number in np.unique(cluster[allowed]).tolist():
        rows = np.flatnonzero(allowed & (cluster == number))
        field, here = ground(pool.snapshot, pool.scoring, ask, rows=rows, uses=pool.loads.uses)
        ends = pool.loads.ends[here]
        bound, late_s = _bound(pool, field, ends, now=now), float(pool.late_s[number])
        yield _Search(number, rows, field, ends, bound, late_s)


def _earliest(pool: Pool, ask: Ask, search: _Search, *, now: float, by: float) -> Place | None:
    """The earliest place in a cluster, None when it is later than `by` beside no booking."""
    rows, field, ends = search.rows, search.field, search.ends
    finite = pool.loads.ends[np.isfinite(pool.loads.ends)]
    times = np.concatenate([[now], np.unique(finite)])
    soon = times[: int(np.searchsorted(times, by, side="right"))]
    first = int(np.searchsorted(soon, search.bound))

    def tried_at(time: float, where: Ground) -> Statement | None:
        return where.without(ends <= time, _units_left(pool, ask, time))

    def tried(at: int) -> Statement | None:
        return tried_at(float(times[at]), field)

    if first == len(soon) or tried(len(soon) - 1) is None:
        return None
    low, high = first - 1, len(soon) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tried(middle) is None else (low, middle)
    start = float(times[high])
    found = tried(high)
    for later in _later(pool, start, times[high:]):
        start, found = later, tried_at(later, _open_at(pool, field, rows=rows, time=later))
        if found is not None:
            break
    if found is None:
        return None
    uses = _uses(found, rows)
    return Place(
        start=start,
        cluster=search.cluster,
        uses=uses,
        kept=_kept(field, ends <= start, uses, rows=rows),
        quota=_quota(pool, ask, found, start=start),
        runs_at=start + search.late_s,
    )


def _later(pool: Pool, start: float, ends: Floats) -> list[float]:
    """Times from `start` on at which it may fit beside bookings; none when none is in the way."""
    if pool.booked is None:
        return []
    return sorted({*ends.tolist(), *pool.booked.ends_after(start)})[:MOST_LATER]


def _open_at(pool: Pool, field: Ground, *, rows: Ints, time: float) -> Ground:
    """The ground without the rows that bookings close to a job that starts at a time."""
    if pool.booked is None:
        return field
    is_open = ~pool.booked.closed_at(time)[rows]
    masks = {shape: mask & is_open for shape, mask in field.ask.masks.items()}
    return replace(field, ask=replace(field.ask, masks=masks))


def _bound(pool: Pool, field: Ground, ends: Floats, *, now: float) -> float:
    """Before this time the pool as a whole has too few blocks free, wherever they are."""
    need = sum(
        group.min_count * min(_blocks(pool, shape) for shape in shapes)
        for group, shapes in zip(field.ask.view.request.groups, field.ask.view.shapes, strict=True)
    )
    free = int(np.maximum(field.snapshot.nodes.blocks_free, 0).sum())
    uses = field.uses
    of_task = np.repeat(np.arange(len(ends)), np.diff(uses.first_task))
    of_grant = np.repeat(of_task, np.diff(uses.first_grant))
    blocks = np.bincount(of_grant, uses.blocks, len(ends)).astype(np.int64)
    order = np.argsort(ends, kind="stable")
    order = order[np.isfinite(ends[order])]
    room = len(order) + 1
    steps = Steps(np.zeros(room), np.zeros(room, np.int64), np.zeros(1, np.int64))
    of_ends(steps, free, ends[order], blocks[order], now)
    return float(find_hole(steps, need, 0.0, now))


def _blocks(pool: Pool, shape: int) -> int:
    device = pool.snapshot.task_shape(shape).device
    # Of slices and of shares by memory the profile knows nothing: they bound nothing.
    if device is None or device.profile or device.memory_bytes:
        return 0
    return device.count * device.blocks


def _units_left(pool: Pool, ask: Ask, at: float) -> int:
    numbers = list(binding(ask.view, pool.snapshot))
    if not numbers:
        return UNLIMITED
    freed = pool.loads.quota[pool.loads.ends <= at][:, numbers].sum(axis=0)
    left = pool.snapshot.limits.limit[numbers] - pool.used[numbers] + freed
    return max(0, int(left.min()))


def _quota(pool: Pool, ask: Ask, found: Statement, *, start: float) -> Ints:
    kept = np.zeros(len(pool.used), np.int64)
    numbers = list(binding(ask.view, pool.snapshot))
    if numbers:
        need = int(found.journal.units[: found.checkpoint()].sum())
        freed = pool.loads.quota[pool.loads.ends <= start][:, numbers].sum(axis=0)
        kept[numbers] = np.maximum(0, need - freed)
    return kept


def _uses(found: Statement, rows: Ints) -> Uses:
    size, uses = found.checkpoint(), found.journal.uses
    shares = int(uses.first_grant[size])
    return Uses(
        first_task=np.array([0, size], np.int64),
        row=rows[uses.row[:size]],
        cpu=uses.cpu[:size].copy(),
        memory=uses.memory[:size].copy(),
        first_grant=uses.first_grant[: size + 1].copy(),
        device=uses.device[:shares].copy(),
        blocks=uses.blocks[:shares].copy(),
        bits=uses.bits[:shares].copy(),
    )


def _kept(field: Ground, gone: NDArray[np.bool_], uses: Uses, *, rows: Ints) -> Uses:
    """What of `uses` does not come free by the end of the runs that are gone by then."""
    now, then = field.snapshot.nodes, scratch_copy(field.snapshot.nodes)
    give_gangs(then, field.uses, np.flatnonzero(gone))
    mine, of_task = np.unique(np.searchsorted(rows, uses.row), return_inverse=True)
    of_grant = np.repeat(of_task, np.diff(uses.first_grant))
    wide = (len(mine), now.model.shape[1])
    blocks, bits = np.zeros(wide, np.int64), np.zeros(wide, np.int64)
    np.add.at(blocks, (of_grant, uses.device), uses.blocks)
    np.bitwise_or.at(bits, (of_grant, uses.device), uses.bits)
    blocks = np.maximum(0, blocks - (then.blocks_free[mine] - now.blocks_free[mine]))
    bits &= ~now.slices[mine].astype(np.int64)
    where, device = np.nonzero(blocks | bits)
    return Uses(
        first_task=np.array([0, len(mine)], np.int64),
        row=rows[mine],
        cpu=_short(uses.cpu, of_task, now=now, then=then, name="cpu_free", rows=mine),
        memory=_short(uses.memory, of_task, now=now, then=then, name="memory_free", rows=mine),
        first_grant=offsets(np.bincount(where, minlength=len(mine))),
        device=device.astype(np.int64),
        blocks=blocks[where, device],
        bits=bits[where, device],
    )


def _short(amount: Ints, of_task: Ints, *, now: Nodes, then: Nodes, name: str, rows: Ints) -> Ints:
    need = np.zeros(len(rows), np.int64)
    np.add.at(need, of_task, amount)
    freed: Ints = getattr(then, name)[rows] - getattr(now, name)[rows]
    short: Ints = np.maximum(0, need - freed)
    return short
