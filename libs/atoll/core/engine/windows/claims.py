"""Binds what guaranteed deadlines will need to devices, as windows of one cycle.

Nobody may hold these devices then who could not be told to stop; the guaranteed jobs go in
before everybody else. Nobody is stopped before such a job is there and finds no place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.booking import NodeShare, OccurrenceId, OnEnd, Owners, Window
from atoll.core.model.ids import NodeId
from atoll.core.model.plan import Claim
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceGrant
from atoll.core.state.columns import MODE_BLOCKS, STATUS_OK
from atoll.core.state.run_columns import uses_of
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.windows import beside

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_CLAIMS: Final = 256
"""The first to begin are bound."""


def with_claims(snapshot: Snapshot, claims: Sequence[Claim], now: float) -> Snapshot:
    """The snapshot with windows for what claims need, as far as there are devices."""
    wanted = sorted(claims, key=lambda claim: (claim.start, claim.id))[:MOST_CLAIMS]
    if not wanted:
        return snapshot
    bound = list(_Binder(snapshot, now).bound([claim for claim in wanted if claim.end > now]))
    return replace(snapshot, windows=beside(snapshot.windows, bound))


class _Binder:
    """Devices by when they come free, and for which claims they were taken."""

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self._snapshot, self._now = snapshot, now
        nodes, models = snapshot.nodes, snapshot.hardware.models
        self._kind = models.kind[nodes.model]
        is_open = np.array([view.closed is None for view in snapshot.clusters] or [False])
        takes_work = (nodes.status == STATUS_OK) & is_open[nodes.cluster]
        whole = models.mode[nodes.model] & MODE_BLOCKS != 0
        whole &= nodes.blocks_cap == BLOCKS_PER_DEVICE
        self._usable: Bools = whole & takes_work[:, None]
        self._free_at = self._ends()
        self._taken: list[tuple[float, float, Bools]] = []

    def bound(self, claims: Sequence[Claim]) -> Iterator[Window]:
        """A window for every claim that finds devices."""
        for number, claim in enumerate(claims, 1):
            chosen = self._choose(claim)
            if chosen.any():
                self._taken.append((claim.start, claim.end, chosen))
                yield self._window(number, claim, chosen)

    def _ends(self) -> Floats:
        """(N, D) when the last of those ends who may not be stopped."""
        snapshot = self._snapshot
        running, ends = snapshot.running, np.zeros(self._usable.shape)
        slots = running.slots()
        slots = slots[~running.runs.preemptible[slots] | running.runs.guaranteed[slots]]
        uses = uses_of(running.tasks, slots, snapshot.nodes)
        counts = np.diff(uses.first_grant)
        of_task = np.repeat(slots, np.diff(uses.first_task))
        end = np.repeat(running.runs.ends_at[of_task], counts)
        np.maximum.at(ends, (np.repeat(uses.row, counts), uses.device), end)
        return ends

    def _choose(self, claim: Claim) -> Bools:
        """(N, D) devices on as few nodes as possible, those that are free the longest first."""
        able = self._able(claim)
        room = able.sum(axis=1)
        used = np.where(able, self._free_at, 0.0).max(axis=1, initial=0.0)
        rows = np.lexsort((np.arange(len(room)), used, -room))
        chosen = np.zeros(able.shape, np.bool_)
        left = -(-claim.blocks // BLOCKS_PER_DEVICE)
        for row in rows[room[rows] > 0].tolist():
            devices = np.flatnonzero(able[row])[:left]
            chosen[row, devices] = True
            left -= len(devices)
            if left <= 0:
                return chosen
        return chosen

    def _able(self, claim: Claim) -> Bools:
        snapshot = self._snapshot
        kind = snapshot.kinds.get(claim.kind, -1)
        names = [view.name for view in snapshot.clusters]
        inside = snapshot.nodes.cluster == (
            names.index(claim.cluster) if claim.cluster in names else -1
        )
        able: Bools = self._usable & (self._kind == kind) & inside[:, None]
        able &= self._free_at <= max(claim.start, self._now)
        able[self._booked(claim)] = False
        for start, end, devices in self._taken:
            if start < claim.end and claim.start < end:
                able &= ~devices
        return able

    def _booked(self, claim: Claim) -> Ints:
        """Rows that somebody has booked meanwhile."""
        view, nodes = self._snapshot.windows, self._snapshot.nodes
        meets = (view.start < claim.end) & (view.end > claim.start)
        return view.on(nodes.id, nodes.model.shape[1]).rows_of(meets)

    def _window(self, number: int, claim: Claim, chosen: Bools) -> Window:
        return Window(
            id=OccurrenceId(-number),
            booking=claim.id,
            start=claim.start,
            end=claim.end,
            cluster=claim.cluster,
            shares=tuple(self._share(row, chosen[row]) for row in _rows(chosen)),
            owners=Owners(queues=claim.queues),
            on_end=OnEnd.CONTINUE,
        )

    def _share(self, row: int, devices: Bools) -> NodeShare:
        nodes = self._snapshot.nodes
        numbers = np.flatnonzero(devices).tolist()
        # CPU and memory go with devices, so that these can be used.
        part = len(numbers) / max(1, int((nodes.model[row] > 0).sum()))
        return NodeShare(
            node=NodeId(int(nodes.id[row])),
            node_name=self._snapshot.names[row],
            cpu_milli=max(0, int(nodes.cpu_cap[row] * part)),
            memory_bytes=max(0, int(nodes.memory_cap[row] * part)),
            devices=tuple(DeviceGrant(index, BLOCKS_PER_DEVICE) for index in numbers),
        )


def _rows(chosen: Bools) -> list[int]:
    rows: list[int] = np.flatnonzero(chosen.any(axis=1)).tolist()
    return rows
