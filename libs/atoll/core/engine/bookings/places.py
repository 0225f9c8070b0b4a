"""Chooses nodes and devices for what is wanted, through all of some spans at once.

Nodes that are booked much already come first, so that others stay unbooked as a whole; a large
amount takes the nodes first that have most of it free, and its rest the one that it fills best.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.bookings.segment_kernels import ALL_BITS, View, costs, room
from atoll.core.engine.bookings.segments import TOP, SegmentBook
from atoll.core.engine.bookings.terrain import Terrain
from atoll.core.engine.bookings.unit_kernels import Taken, fitting, take_units
from atoll.core.engine.bookings.wanted import Need, Pool, Sort
from atoll.core.model.booking import NodeShare
from atoll.core.model.reservation import Part, Parts
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.columns import scratch_copy
from atoll.core.state.mig import MEDIA_BIT, grant_bits

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Spans = Sequence[tuple[float, float]]

LOWEST = -TOP
EVERYTHING = View(LOWEST, True)
"""All windows count, and runs until they end by themselves: nothing is displaced."""


@dataclass(slots=True)
class _Share:
    cpu: int = 0
    memory: int = 0
    whole: bool = False
    blocks: dict[int, int] = field(default_factory=dict)
    slices: list[DeviceGrant] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    """Where it lies, and the sum of what its nodes would lose."""

    parts: Parts
    cost: float


class Chooser:
    """Chooses among the nodes of a terrain beside the pieces of a book."""

    def __init__(self, terrain: Terrain, book: SegmentBook) -> None:
        self.terrain = terrain
        self.book = book
        self.booked_s: Floats = np.zeros(len(terrain.snapshot.names))
        """(N) seconds for which each node is booked."""
        self._scratch = scratch_copy(terrain.snapshot.nodes)
        self._busy = np.zeros(len(terrain.snapshot.names), np.bool_)
        self._prefer = np.zeros(len(terrain.snapshot.names), np.bool_)

    def prefer(self, rows: Ints | Sequence[int]) -> None:
        """Nodes to take from now on if they will do."""
        self._prefer[:] = False
        self._prefer[rows] = True

    def preferred(self, rows: Ints) -> bool:
        """Whether one of the nodes is to be taken if it will do."""
        return bool(self._prefer[rows].any())

    def room(self, rows: Ints, spans: Spans, view: View) -> None:
        """Work out what is free of nodes through all spans."""
        times = np.array(spans, np.float64).reshape(-1, 2)
        room(
            self.book.columns, self.book.head, self.terrain.snapshot.nodes, self._scratch,
            self._busy, rows, times[:, 0].copy(), times[:, 1].copy(), view,
        )  # fmt: skip

    def free_of(self, row: int, span: tuple[float, float], view: View) -> Ints:
        """CPU, memory, and blocks by device, that are free of one node."""
        self.room(np.array([row], np.int64), [span], view)
        scratch = self._scratch
        amounts = [scratch.cpu_free[row], scratch.memory_free[row]]
        return np.concatenate([amounts, scratch.blocks_free[row]]).astype(np.int64)

    def has(self, row: int, share: NodeShare) -> bool:
        """Whether a share is free of a node, as of the last `room`."""
        if not self._busy[row] or share.whole:
            return not self._busy[row]
        scratch = self._scratch
        if scratch.cpu_free[row] < share.cpu_milli or scratch.memory_free[row] < share.memory_bytes:
            return False
        cap = self.terrain.snapshot.nodes.blocks_cap
        # Nothing of a device may be held in blocks where slices of it are.
        return all(
            not scratch.slices[row, g.index] & (grant_bits(g.profile, g.slice_mask) or ALL_BITS)
            and scratch.blocks_free[row, g.index] >= (g.blocks or cap[row, g.index])
            for g in share.devices
        )

    def free(self, need: Need) -> Ints:
        """(rows) units or nodes that are free of each node, as of the last `room`."""
        if need.ask is None:
            return (~self._busy[need.rows]).astype(np.int64)
        hardware = self.terrain.snapshot.hardware
        found: Ints = fitting(self._scratch, hardware, need.ask, need.rows, need.count)
        return found

    def place(self, pool: Pool, spans: Spans, view: View) -> Place | None:
        """A place that is free through all spans, or None."""
        rows = pool.rows
        self.room(rows, spans, view)
        cost = np.zeros(len(self._busy))
        if view != EVERYTHING:
            cost[rows] = costs(self.book.columns, self.book.head, rows, *spans[0], view, EVERYTHING)
        shares: dict[int, _Share] = {}
        for need in pool.needs:
            if not self._meet(need, cost, shares):
                return None
        return Place(self._parts(shares), float(cost[list(shares)].sum()))

    def _meet(self, need: Need, cost: Floats, shares: dict[int, _Share]) -> bool:
        match need.sort:
            case Sort.UNITS:
                return self._meet_units(need, cost, shares)
            case Sort.NODES:
                return self._meet_nodes(need, cost, shares)
            case Sort.DOMAINS:
                return self._meet_domains(need, cost, shares)

    def _meet_units(self, need: Need, cost: Floats, shares: dict[int, _Share]) -> bool:
        units = self.free(need)
        chosen = self._split(need, units, cost)
        if chosen is None or need.ask is None:
            return False
        rows, wanted = chosen
        hardware = self.terrain.snapshot.hardware
        taken = take_units(self._scratch, hardware, need.ask, rows, wanted)
        if (taken.units < wanted).any():
            return False
        for at, row in enumerate(rows.tolist()):
            _add(shares.setdefault(row, _Share()), taken, at, profile=need.profile)
        return True

    def _split(self, need: Need, units: Ints, cost: Floats) -> tuple[Ints, Ints] | None:
        """Rows, and how many units each gives."""
        some = np.flatnonzero(units)
        rows, units = need.rows[some], units[some]
        order = self._order(rows, cost, -units)
        sums = np.cumsum(units[order])
        full = int(np.searchsorted(sums, need.count))
        if full == len(order):
            return None
        rest = need.count - (int(sums[full - 1]) if full else 0)
        behind = order[full:]
        behind = behind[units[behind] >= rest]
        last = behind[self._order(rows[behind], cost, units[behind])[:1]]
        chosen = np.concatenate([order[:full], last])
        wanted = units[chosen].copy()
        wanted[-1] = rest
        return rows[chosen], wanted

    def _meet_nodes(self, need: Need, cost: Floats, shares: dict[int, _Share]) -> bool:
        rows = need.rows[~self._busy[need.rows]]
        if len(rows) < need.count:
            return False
        order = self._order(rows, cost, np.zeros(len(rows)))
        for row in rows[order[: need.count]].tolist():
            shares[row] = _Share(whole=True)
        return True

    def _meet_domains(self, need: Need, cost: Floats, shares: dict[int, _Share]) -> bool:
        assert need.domain is not None
        taken = np.unique(need.domain[self._busy[need.rows]])
        free = np.flatnonzero(~np.isin(need.domain, taken))
        numbers, at, of = np.unique(need.domain[free], return_index=True, return_inverse=True)
        if len(numbers) < need.count:
            return False
        rows = need.rows[free]
        sums = [np.bincount(of, each[rows]) for each in (self.booked_s, cost, ~self._prefer)]
        order = np.lexsort((rows[at], -sums[0], sums[1], sums[2]))[: need.count]
        for row in rows[np.isin(of, order)].tolist():
            shares[row] = _Share(whole=True)
        return True

    def _order(self, rows: Ints, cost: Floats, units: NDArray[np.generic]) -> Ints:
        keys = (rows, -self.booked_s[rows], units, cost[rows], ~self._prefer[rows])
        order: Ints = np.lexsort(keys)
        return order

    def _parts(self, shares: dict[int, _Share]) -> Parts:
        snapshot, by_cluster = self.terrain.snapshot, dict[str, list[NodeShare]]()
        for row in sorted(shares):
            share = shares[row]
            blocks = [DeviceGrant(device, n) for device, n in sorted(share.blocks.items())]
            made = NodeShare(
                node=snapshot.nodes.id[row].item(),
                node_name=snapshot.names[row],
                cpu_milli=share.cpu,
                memory_bytes=share.memory,
                devices=(*blocks, *share.slices),
                whole=share.whole,
            )
            by_cluster.setdefault(self.terrain.cluster_of(row), []).append(made)
        return tuple(
            Part(self.terrain.cluster_of(snapshot.row_of[found[0].node]), tuple(found))
            for _, found in sorted(by_cluster.items())
        )


def _add(share: _Share, taken: Taken, at: int, *, profile: str) -> None:
    share.cpu += int(taken.cpu[at])
    share.memory += int(taken.memory[at])
    for i in range(int(taken.first[at]), int(taken.first[at + 1])):
        device, blocks, bits = int(taken.device[i]), int(taken.blocks[i]), int(taken.bits[i])
        if bits:
            share.slices.append(DeviceGrant(device, 0, bits & ~MEDIA_BIT, profile))
        else:
            share.blocks[device] = share.blocks.get(device, 0) + blocks
