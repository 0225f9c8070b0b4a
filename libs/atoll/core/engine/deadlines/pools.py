"""Pools of whole devices as a snapshot has them: how many there are, and who holds them how long.

A pool is the devices of one kind in one cluster. Fractions and slices are not
promised: a device with any share taken counts as held.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.deadlines.terms import FOR_EVER, Taken
from atoll.core.model.ids import ClusterName
from atoll.core.state.columns import MODE_BLOCKS, STATUS_OK
from atoll.core.state.ledger import Holding
from atoll.core.state.run_columns import uses_of
from atoll.core.state.snapshot import Snapshot

Ints = NDArray[np.int64]
WHOLE = 100
Pool = tuple[ClusterName, str]
"""(cluster, device kind)."""


@dataclass(frozen=True, slots=True)
class Held:
    """Devices of one pool that an attempt holds."""

    pool: Pool
    devices: int
    holding: Holding


class Pools:
    """The pools of a snapshot; `now` in whole seconds. `everywhere`: as if all nodes took work."""

    def __init__(self, snapshot: Snapshot, now: int, *, everywhere: bool = False) -> None:
        self._snapshot, self._now, self._everywhere = snapshot, now, everywhere
        self._kinds = {number: name for name, number in snapshot.kinds.items()}

    def capacities(self) -> dict[Pool, int]:
        """Devices that could be handed out whole, in clusters that take work."""
        snapshot = self._snapshot
        nodes, models = snapshot.nodes, snapshot.hardware.models
        rows, devices = np.nonzero(self._usable)
        return self._counted(nodes.cluster[rows], models.kind[nodes.model[rows, devices]])

    def taken(self, without: Ints) -> dict[Pool, list[Taken]]:
        """By pool, what running work holds and until when it may; slots in `without` are not."""
        slot, device, cluster, kind = self._grants
        others = ~np.isin(slot, without) & self._usable.ravel()[device]
        ends = self._snapshot.running.runs.ends_at[slot[others]]
        # Several shares of one device: it is held until the last of them ends.
        order = np.argsort(-ends, kind="stable")
        _, first = np.unique(device[others][order], return_index=True)
        kept = order[first]
        found: dict[Pool, list[Taken]] = {}
        whole = np.minimum(np.ceil(ends[kept]), float(self._now + FOR_EVER)).astype(np.int64)
        groups = np.stack((cluster[others][kept], kind[others][kept], whole), axis=1)
        for (where, what, end), count in zip(
            *np.unique(groups, axis=0, return_counts=True), strict=True
        ):
            part = Taken(self._now, max(int(end), self._now + 1), int(count))
            found.setdefault(self._pool(int(where), int(what)), []).append(part)
        return found

    def promised(self) -> tuple[Ints, list[Held]]:
        """Slots of running work whose deadline is guaranteed, and what each holds."""
        running = self._snapshot.running
        slots = running.slots()
        slots = slots[running.runs.guaranteed[slots]]
        return slots, [held for s in slots.tolist() for held in self._held(s)]

    def _held(self, wanted: int) -> Iterator[Held]:
        slot, _, cluster, kind = self._grants
        mine = np.flatnonzero(slot == wanted)
        if mine.size:
            pool = self._pool(int(cluster[mine[0]]), int(kind[mine[0]]))
            yield Held(pool, int(mine.size), self._snapshot.running.holdings[wanted])

    @cached_property
    def _usable(self) -> NDArray[np.bool_]:
        """(N, D) devices that can be handed out whole."""
        snapshot = self._snapshot
        nodes, models = snapshot.nodes, snapshot.hardware.models
        usable: NDArray[np.bool_] = (nodes.blocks_cap == WHOLE) & (
            models.mode[nodes.model] & MODE_BLOCKS != 0
        )
        if snapshot.rentals:
            # A machine that may be taken back tomorrow is nothing to promise, or to grow on.
            usable &= ~snapshot.rentals.rows[:, None]
        if self._everywhere:
            return usable
        is_open = np.array([view.closed is None for view in snapshot.clusters], np.bool_)
        if not is_open.size:
            return np.zeros_like(usable)
        found: NDArray[np.bool_] = (
            usable & (is_open[nodes.cluster] & (nodes.status == STATUS_OK))[:, None]
        )
        return found

    @cached_property
    def _grants(self) -> tuple[Ints, Ints, Ints, Ints]:
        """(shares) slot, device (a number of its own), cluster, kind."""
        snapshot = self._snapshot
        nodes, running = snapshot.nodes, snapshot.running
        slots = running.slots()
        uses = uses_of(running.tasks, slots, nodes)
        counts = np.diff(uses.first_grant)
        rows = np.repeat(uses.row, counts)
        slot = np.repeat(np.repeat(slots, np.diff(uses.first_task)), counts)
        device = rows * nodes.model.shape[1] + uses.device
        kind = snapshot.hardware.models.kind[nodes.model[rows, uses.device]]
        return slot, device, nodes.cluster[rows].astype(np.int64), kind.astype(np.int64)

    def _counted(self, clusters: NDArray[np.int32], kinds: NDArray[np.int32]) -> dict[Pool, int]:
        pairs = np.stack((clusters, kinds), axis=1)
        found, counts = np.unique(pairs, axis=0, return_counts=True)
        return {
            self._pool(int(where), int(what)): int(count)
            for (where, what), count in zip(found, counts, strict=True)
        }

    def _pool(self, cluster: int, kind: int) -> Pool:
        return self._snapshot.clusters[cluster].name, self._kinds.get(kind, "")


def whole_seconds(moment: float, *, up: bool) -> int:
    """A unix time as whole seconds, at most FOR_EVER."""
    bounded = min(moment, float(FOR_EVER))
    return math.ceil(bounded) if up else math.floor(bounded)
