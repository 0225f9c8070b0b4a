"""The pieces of time that windows, guarantees and runs hold of nodes, in columns that kernels read.

Pieces of windows come and go one by one; those of runs are written anew with every snapshot.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.bookings.segment_kernels import NOTHING, Segments, link, unlink
from atoll.core.model.booking import OPEN_ENDED_S, NodeShare
from atoll.core.model.reservation import Parts
from atoll.core.state.columns import copy_leading
from atoll.core.state.mig import grant_bits
from atoll.core.state.ragged import spans
from atoll.core.state.run_columns import rows_of
from atoll.core.state.snapshot import Snapshot

Ints = NDArray[np.int64]
TOP: Final = 1 << 40
"""Rank of what no booking overrides."""
EARLY: Final = -np.inf
SOON_S: Final = 1.0
"""What should have ended already is taken to end so much after now."""


class SegmentBook:
    """Pieces by node of the snapshot that was looked at last."""

    def __init__(self) -> None:
        self.head: Ints = np.zeros(0, np.int64)
        self._store = _empty(64, 1)
        self._used = 0
        self._free: list[int] = []
        self._runs = (0, 0)
        self._node = np.full(64, NOTHING, np.int64)
        """(S) node id of windows' pieces: rows move when nodes come, ids do not."""
        self._nodes = np.zeros(0, np.int64)
        self._devices = np.zeros(0, np.int64)

    @property
    def columns(self) -> Segments:
        """What kernels read; valid until more is added."""
        return self._store

    def look(self, snapshot: Snapshot) -> None:
        """Take the runs of a snapshot, and the rows of its nodes."""
        self._drop_runs()
        self._reserve(0, snapshot.nodes.model.shape[1])
        self.head = np.full(len(snapshot.names), NOTHING, np.int64)
        self._nodes = snapshot.nodes.id
        self._devices = (snapshot.nodes.model > 0).sum(axis=1)
        slots = np.flatnonzero(self._node != NOTHING)
        self._store.row[slots] = self._rows(self._node[slots])
        link(self._store, self.head, slots)
        self._add_runs(snapshot)

    def add(self, parts: Parts, *, span: tuple[float, float], rank: int, item: int) -> list[int]:
        """Enter a window of an item; the slots that it has."""
        shares = [share for part in parts for share in part.shares]
        wide = max((g.index + 1 for s in shares for g in s.devices), default=1)
        self._reserve(len(shares), wide)
        slots = [self._slot() for _ in shares]
        new = np.array(slots, np.int64)
        self._node[new] = [share.node for share in shares]
        self._store.row[new] = self._rows(self._node[new])
        for slot, share in zip(slots, shares, strict=True):
            self._write(slot, share, span=span, rank=rank, item=item)
        self._store.devices[new] = sum(map(self.devices_of, shares))
        link(self._store, self.head, new)
        return slots

    def remove(self, slots: Sequence[int]) -> None:
        """Take pieces of windows out."""
        gone = np.array(slots, np.int64)
        unlink(self._store, self.head, gone)
        self._node[gone] = NOTHING
        self._free += slots

    def devices_of(self, share: NodeShare) -> float:
        """Devices that a share has; a node without any counts as one."""
        if share.whole:
            row = int(self._rows(np.array([share.node], np.int64))[0])
            return 1.0 if row == NOTHING else float(max(1, self._devices[row]))
        return sum(g.blocks / 100 if g.blocks else 1.0 for g in share.devices)

    def hide(self, slots: Sequence[int], hidden: bool) -> None:
        """Take pieces as not there, or as there again."""
        self._store.hidden[slots] = hidden

    def _rows(self, ids: Ints) -> Ints:
        if not len(self._nodes):
            return np.full(len(ids), NOTHING, np.int64)
        at = np.minimum(np.searchsorted(self._nodes, ids), len(self._nodes) - 1)
        return np.where(self._nodes[at] == ids, at, NOTHING)

    def _slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._used += 1
        return self._used - 1

    def _write(
        self, slot: int, share: NodeShare, *, span: tuple[float, float], rank: int, item: int
    ) -> None:
        store, (start, end) = self._store, span
        store.start[slot], store.end[slot], store.soft[slot] = start, end, end
        store.rank[slot], store.item[slot] = rank, item
        store.cpu[slot], store.memory[slot] = share.cpu_milli, share.memory_bytes
        store.whole[slot], store.hidden[slot] = share.whole, False
        # All of a window that gives way comes later, whenever it would have begun.
        store.since[slot], store.most_lost[slot], store.restart[slot] = EARLY, end - start, 0.0
        store.blocks[slot], store.bits[slot] = 0, 0
        for grant in share.devices:
            store.blocks[slot, grant.index] += grant.blocks
            if grant.slice_mask:
                store.bits[slot, grant.index] |= grant_bits(grant.profile, grant.slice_mask)

    def _drop_runs(self) -> None:
        first, end = self._runs
        if end == self._used:
            self._used = first
        else:
            self._free += range(first, end)
        self._runs = (self._used, self._used)

    def _add_runs(self, snapshot: Snapshot) -> None:
        running = snapshot.running
        slots = running.slots()
        each = spans(running.tasks.first_task, slots)
        self._reserve(len(each), snapshot.nodes.model.shape[1])
        first, end = self._used, self._used + len(each)
        self._used, self._runs = end, (first, end)
        owner = np.repeat(slots, np.diff(running.tasks.first_task)[slots])
        here = slice(first, end)
        self._write_runs(snapshot, here, owner)
        self._write_tasks(snapshot, first, each)
        link(self._store, self.head, np.arange(first, end))

    def _write_runs(self, snapshot: Snapshot, here: slice, owner: Ints) -> None:
        store, runs, now = self._store, snapshot.running.runs, snapshot.now
        stops = now + runs.grace_s[owner]
        soft = np.maximum(runs.ends_at[owner], now + SOON_S)
        told = snapshot.running.stopping[owner]
        soft = np.where(told, np.minimum(soft, np.maximum(stops, now + SOON_S)), soft)
        gives_way = runs.preemptible[owner] & ~runs.guaranteed[owner]
        # When it ends nobody can tell; the cycle takes the same time for it.
        soft = np.where(gives_way & np.isinf(soft), now + OPEN_ENDED_S, soft)
        store.start[here], store.soft[here] = EARLY, soft
        store.end[here] = np.where(gives_way, np.minimum(soft, stops), soft)
        store.rank[here], store.item[here] = TOP, -1 - owner
        store.whole[here], store.hidden[here] = False, False
        store.since[here] = runs.started_at[owner]
        kept = runs.checkpoint_s[owner]
        store.most_lost[here] = np.where(kept > 0, kept, np.inf)
        store.restart[here] = runs.restart_s[owner]

    def _write_tasks(self, snapshot: Snapshot, first: int, each: Ints) -> None:
        store, tasks = self._store, snapshot.running.tasks
        here = slice(first, first + len(each))
        store.row[here] = rows_of(snapshot.nodes, tasks.node[each])
        store.cpu[here], store.memory[here] = tasks.cpu[each], tasks.memory[each]
        store.blocks[here], store.bits[here] = 0, 0
        grants = spans(tasks.first_grant, each)
        of = first + np.repeat(np.arange(len(each)), np.diff(tasks.first_grant)[each])
        np.add.at(store.blocks, (of, tasks.device[grants]), tasks.blocks[grants])
        np.bitwise_or.at(store.bits, (of, tasks.device[grants]), tasks.bits[grants])
        parts = np.where(tasks.blocks[grants] > 0, tasks.blocks[grants] / 100, 1.0)
        by_item = np.zeros(1 - int(store.item[here].min(initial=0)), np.float64)
        np.add.at(by_item, -store.item[of], parts)
        store.devices[here] = by_item[-store.item[here]]

    def _reserve(self, more: int, wide: int) -> None:
        have, columns = self._store.blocks.shape
        need = self._used + more
        if need <= have and wide <= columns:
            return
        grown = _empty(have if need <= have else max(2 * have, need), max(wide, columns))
        copy_leading(self._store, grown)
        self._store = grown
        self._node = np.pad(self._node, (0, len(grown.row) - have), constant_values=NOTHING)


def _empty(size: int, wide: int) -> Segments:
    wider = {"blocks", "bits"}
    shapes = {name: (size, wide) if name in wider else size for name in Segments._fields}
    return Segments(**{name: np.zeros(shapes[name], kind) for name, kind in _KINDS.items()})


_KINDS: Final = {
    "next": np.int64, "row": np.int64, "start": np.float64, "end": np.float64, "soft": np.float64,
    "rank": np.int64, "item": np.int64, "cpu": np.int64, "memory": np.int64, "whole": np.bool_,
    "hidden": np.bool_, "devices": np.float64, "since": np.float64, "most_lost": np.float64,
    "restart": np.float64, "blocks": np.int16, "bits": np.int16,
}  # fmt: skip
