"""Who has to give way to a place: runs that would be stopped, bookings that would be moved."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.bookings.answers import Booked
from atoll.core.engine.bookings.diary import Diary
from atoll.core.engine.bookings.places import EVERYTHING
from atoll.core.engine.bookings.segment_kernels import Segments, View, pieces
from atoll.core.model.booking import NodeShare, OccurrenceId, Owners
from atoll.core.model.ids import QueueName, attempt_name
from atoll.core.model.reservation import Displaced, DisplacedKind, Parts
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.mig import grant_bits

Ints = NDArray[np.int64]
Span = tuple[float, float]


@dataclass(slots=True)
class Losers:
    """Who gives way, by number, with the time at which it first has to."""

    runs: dict[int, tuple[float, int]] = field(default_factory=dict)
    """By slot of the snapshot's runs; and a piece of each."""
    bookings: dict[OccurrenceId, float] = field(default_factory=dict)

    def add(self, diary: Diary, seg: int, *, at: float, owners: Owners) -> None:
        """Whose piece this is; runs of the owners do not give way to their own booking."""
        item = int(diary.book.columns.item[seg])
        owner = None if item < 0 else diary.owner(item)
        if isinstance(owner, Booked):
            self.bookings.setdefault(owner.id, at)
        elif owner is None and not diary.is_run_of(owners, -1 - item):
            self.runs.setdefault(-1 - item, (at, seg))


@dataclass(frozen=True, slots=True)
class Beside:
    """What lies beside a place in a span, of which it takes what is free by a view."""

    diary: Diary
    span: Span
    view: View

    def losers(self, parts: Parts, owners: Owners, into: Losers) -> None:
        """Add who gives way to a place of these owners."""
        if self.view == EVERYTHING:
            return
        segs, found = self._segs, self._weak(parts)
        for share in (share for part in parts for share in part.shares):
            row = self.diary.terrain.snapshot.row_of[share.node]
            for seg in self._losing(share, row, found[segs.row[found] == row]):
                into.add(self.diary, seg, at=self.span[0], owners=owners)

    @property
    def _segs(self) -> Segments:
        return self.diary.book.columns

    def _weak(self, parts: Parts) -> Ints:
        rows = self.diary.terrain.rows_of(parts)
        head = self.diary.book.head
        found: Ints = pieces(self._segs, head, rows, *self.span, EVERYTHING, self.view)
        return found

    def _losing(self, share: NodeShare, row: int, weak: Ints) -> Iterator[int]:
        """Pieces that do not fit beside a share; the cheap ones as far as there is a choice."""
        if share.whole or not len(weak):
            yield from weak.tolist()
            return
        left = self._left(share, row)
        kept: list[int] = []
        order = np.lexsort((weak, -losses(self._segs, weak, self.span[0])))
        for seg in weak[order].tolist():
            if self._fits(seg, share, left=left, kept=kept):
                kept.append(seg)
            else:
                yield seg

    def _left(self, share: NodeShare, row: int) -> Ints:
        """CPU, memory and blocks by device that are left beside a share and what counts."""
        free = self.diary.chooser.free_of(row, self.span, self.view)
        free[0] -= share.cpu_milli
        free[1] -= share.memory_bytes
        for grant in share.devices:
            free[2 + grant.index] -= grant.blocks
        return free

    def _fits(self, seg: int, share: NodeShare, *, left: Ints, kept: list[int]) -> bool:
        segs = self._segs
        taken = any(_clash(segs, seg, grant) for grant in share.devices)
        beside = [seg, *(other for other in kept if _meet(segs, seg, other))]
        return not (taken or segs.whole[beside].any()) and bool((self._use(beside) <= left).all())

    def _use(self, those: list[int]) -> Ints:
        segs, wide = self._segs, self.diary.terrain.snapshot.nodes.model.shape[1]
        blocks = segs.blocks[those, :wide].sum(axis=0)
        return np.concatenate([[segs.cpu[those].sum(), segs.memory[those].sum()], blocks])


def displaced(diary: Diary, losers: Losers) -> tuple[Displaced, ...]:
    """Who gives way, the dearest first."""
    found = [*_runs(diary, losers), *_bookings(diary, losers)]
    return tuple(sorted(found, key=lambda each: (-each.device_seconds, each.kind, each.name)))


def losses(segs: Segments, those: Ints, at: float) -> NDArray[np.float64]:
    """Device-seconds lost, or late, when what pieces belong to ends at `at`; see `loss`."""
    lost = np.minimum(np.maximum(0.0, at - segs.since[those]), segs.most_lost[those])
    cost: NDArray[np.float64] = np.maximum(1.0, segs.devices[those]) * (lost + segs.restart[those])
    return cost


def _runs(diary: Diary, losers: Losers) -> Iterator[Displaced]:
    running, segs = diary.terrain.snapshot.running, diary.book.columns
    for slot, (at, seg) in losers.runs.items():
        yield Displaced(
            DisplacedKind.RUN,
            attempt_name(running.holdings[slot].attempt),
            _queue(diary, slot),
            math.ceil(segs.devices[seg]),
            float(losses(segs, np.array([seg], np.int64), at)[0]),
        )


def _bookings(diary: Diary, losers: Losers) -> Iterator[Displaced]:
    for booked in map(diary.get, losers.bookings):
        shares = [share for part in booked.parts for share in part.shares]
        devices = sum(map(diary.book.devices_of, shares))
        yield Displaced(
            DisplacedKind.BOOKING,
            booked.name,
            booked.queue,
            math.ceil(devices),
            devices * (booked.end - booked.start),
        )


def _clash(segs: Segments, seg: int, grant: DeviceGrant) -> bool:
    """Whether a piece has slices that are granted, or has the device in the other way."""
    blocks, bits = int(segs.blocks[seg, grant.index]), int(segs.bits[seg, grant.index])
    if not grant.slice_mask:
        return bits != 0
    return blocks > 0 or bits & grant_bits(grant.profile, grant.slice_mask) != 0


def _meet(segs: Segments, one: int, other: int) -> bool:
    return bool(segs.start[one] < segs.soft[other] and segs.start[other] < segs.soft[one])


def _queue(diary: Diary, slot: int) -> QueueName:
    return diary.terrain.snapshot.running.holdings[slot].queue
