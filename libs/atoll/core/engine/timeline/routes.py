"""Where each class of jobs could go, and when there would be room if nobody were before it."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.masks import Masks
from atoll.core.engine.timeline.basins import CPU_UNIT, Units
from atoll.core.engine.timeline.expected_runs import ExpectedRuns
from atoll.core.engine.timeline.first_fit_kernels import OUTSIDE, Ends, Search, first_fits
from atoll.core.engine.timeline.gates import Gate, gate
from atoll.core.model.plan import GroupRequest
from atoll.core.model.resources import ANY_KIND
from atoll.core.state.columns import scratch_copy
from atoll.core.state.fit_kernels import VIEW_ROWS
from atoll.core.state.snapshot import ClassView, Snapshot

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
MOST_BASINS: Final = 256
"""Beyond so many, what may go to some nodes only is taken to flow over the whole cluster."""
MOST_SHAPES: Final = 1024
"""Distinct shapes and counts that are looked for on nodes; of others only the sums count."""
_ANYWHERE: Final = -1
_BasinKey = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Route:
    """One way for a class: a cluster, by one alternative of its largest group."""

    basin: int
    cluster: int
    first: float
    """When all its groups have room there, whoever else waits; infinity: never."""
    opens: float
    """When bookings let it in."""
    booking: str


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """A basin and where it is."""

    avail: Floats
    """(BUCKETS) what comes free when."""
    rows: Bools
    cluster: int
    unit: int
    cap: float


@dataclass(slots=True)
class Routes:
    """Finds routes over one snapshot; what classes have in common is worked out once."""

    snapshot: Snapshot
    runs: ExpectedRuns
    masks: Masks
    units: Units = field(init=False)
    grounds: list[Ground] = field(default_factory=list)
    _number: dict[_BasinKey, int] = field(default_factory=dict)
    _firsts: dict[Hashable, Floats] = field(default_factory=dict)
    _gates: dict[tuple[int, int], Gate] = field(default_factory=dict)
    _masks: dict[bytes, int] = field(default_factory=dict)
    _seen: dict[int, tuple[int, Bools]] = field(default_factory=dict)
    """By identity; the mask is kept, so that no other gets it."""
    _scratch: "_Scratch" = field(init=False)

    def __post_init__(self) -> None:
        self.units = Units(self.snapshot, self.runs)
        self._scratch = _Scratch(self.snapshot)

    def of(self, view: ClassView) -> list[Route]:
        """All routes of a class; none: no node will take it."""
        groups = view.request.groups
        largest = max(range(len(groups)), key=lambda at: _size(groups[at]))
        first = np.zeros(len(self.snapshot.clusters))
        for at, group in enumerate(groups):
            if at != largest:
                firsts = [self._first(view, group, n) for n in view.shapes[at]]
                first = np.maximum(first, np.minimum.reduce(firsts))
        return list(self._largest(view, largest, first))

    def _largest(self, view: ClassView, at: int, others: Floats) -> Iterator[Route]:
        group = view.request.groups[at]
        for shape in view.shapes[at]:
            way = self._gate(view, shape)
            first = np.maximum(others, self._first(view, group, shape))
            for cluster in np.flatnonzero(np.isfinite(first) & np.isfinite(way.opens)).tolist():
                basin = self._ground(view, shape, cluster)
                yield Route(basin, cluster, float(first[cluster]), way.opens, way.booking)

    def _first(self, view: ClassView, group: GroupRequest, shape: int) -> Floats:
        """(clusters) when a group has room for its least count."""
        topology = view.request.topology
        level = topology.level if topology is not None and topology.required else ""
        allowed = self._gate(view, shape).rows
        key = (shape, group.min_count, level, self._same(allowed))
        if key not in self._firsts:
            domain = _domains(self.snapshot, allowed, level)
            if len(self._firsts) < MOST_SHAPES:
                found = self._scratch.first(self.runs, shape, group.min_count, domain=domain)
            else:
                found = np.full(len(self.snapshot.clusters), np.inf)
                found[self.snapshot.nodes.cluster[domain != OUTSIDE]] = self.snapshot.now
            self._firsts[key] = found
        return self._firsts[key]

    def _ground(self, view: ClassView, shape: int, cluster: int) -> int:
        value = self.snapshot.task_shape(shape)
        unit = self._unit(value.device.kind) if value.device and value.device.count else CPU_UNIT
        allowed = self._gate(view, shape).rows
        key = (self._same(allowed), cluster, unit)
        if key not in self._number and len(self.grounds) >= MOST_BASINS:
            key = (_ANYWHERE, cluster, unit)
        if key not in self._number:
            rows = self.snapshot.nodes.cluster == cluster
            if key[0] != _ANYWHERE:
                rows &= allowed
            cap = float(np.maximum(self.units.of_nodes(unit)[0][rows], 0).sum())
            avail = self.units.basin(rows, unit)
            self._number[key] = len(self.grounds)
            self.grounds.append(Ground(avail, rows, cluster, unit, cap))
        return self._number[key]

    def _gate(self, view: ClassView, shape: int) -> Gate:
        key = (view.number, shape)
        if key not in self._gates:
            self._gates[key] = gate(self.masks, view, self.snapshot.task_shape(shape))
        return self._gates[key]

    def _same(self, mask: Bools) -> int:
        """A number that equal masks share."""
        if id(mask) not in self._seen:
            number = self._masks.setdefault(np.packbits(mask).tobytes(), len(self._masks))
            self._seen[id(mask)] = number, mask
        return self._seen[id(mask)][0]

    def _unit(self, kind: str) -> int:
        if kind != ANY_KIND:
            return self.snapshot.kinds.get(kind, CPU_UNIT)
        known = self.snapshot.kinds.values()
        return max(known, key=lambda n: float(self.units.of_nodes(n)[0].sum()), default=CPU_UNIT)


class _Scratch:
    """Room for the kernel to work in."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._nodes = scratch_copy(snapshot.nodes)
        self._seen = np.zeros((VIEW_ROWS, snapshot.nodes.model.shape[1]), np.int64)
        self._rooms = np.zeros(len(snapshot.names), np.int64)

    def first(
        self, runs: ExpectedRuns, shape: int, need: int, *, domain: NDArray[np.int32]
    ) -> Floats:
        snapshot = self._snapshot
        models, cuts = snapshot.hardware
        found = np.empty(len(snapshot.clusters))
        sums = np.zeros(int(domain.max(initial=0)) + 1, np.int64)
        where = snapshot.nodes.cluster
        first_fits(
            self._nodes,
            models,
            cuts,
            snapshot.shapes,
            shape,
            need,
            Ends(runs.uses, runs.by_end, runs.task_end, snapshot.now),
            Search(domain, where, self._seen, self._rooms, sums, found),
        )
        return found


def _domains(snapshot: Snapshot, allowed: Bools, level: str) -> NDArray[np.int32]:
    """(N) the domain inside which a gang has to stay: its cluster, or what it requires."""
    if not level:
        return np.where(allowed, snapshot.nodes.cluster, OUTSIDE).astype(np.int32)
    column = snapshot.level_column(level)
    if column is None:
        return np.full(len(allowed), OUTSIDE, np.int32)
    inside = snapshot.nodes.domain[:, column]
    return np.where(allowed & (inside >= 0), inside, OUTSIDE).astype(np.int32)


def _size(group: GroupRequest) -> tuple[int, int]:
    shape = group.shapes[0]
    devices = shape.device.count * max(shape.device.blocks, 1) if shape.device else 0
    return group.min_count * devices, group.min_count * shape.cpu_milli


def overlaps(grounds: Sequence[Ground], units: Units) -> Floats:
    """(G, G) [one, other]: what part of a unit of work on one falls to the other, by its unit.

    Work spreads evenly over its nodes; in the unit of the other basin it is what it takes of that.
    """
    part = np.zeros((len(grounds), len(grounds)))
    for one, here in enumerate(grounds):
        for other, there in enumerate(grounds):
            if here.cluster == there.cluster:
                cap = np.maximum(units.of_nodes(there.unit)[0], 0)
                whole = float(cap[here.rows].sum())
                part[one, other] = float(cap[here.rows & there.rows].sum()) / max(whole, 1e-9)
    return part
