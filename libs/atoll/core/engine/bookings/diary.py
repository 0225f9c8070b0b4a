"""What is in the calendar: windows and guarantees with their pieces, over a terrain.

A trial enters and hides windows for the time of one question.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.bookings.answers import Booked
from atoll.core.engine.bookings.places import EVERYTHING, Chooser
from atoll.core.engine.bookings.segment_kernels import View, pieces
from atoll.core.engine.bookings.segments import EARLY, TOP, SegmentBook
from atoll.core.engine.bookings.terrain import Terrain
from atoll.core.engine.bookings.wanted import pools_of
from atoll.core.model.booking import OccurrenceId, Owners, owned_by
from atoll.core.model.plan import Claim
from atoll.core.model.reservation import Amount, Parts, What, WholeNodes
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceRequest
from atoll.core.state.snapshot import Snapshot

Ints = NDArray[np.int64]
Owner = Booked | Claim
HARD: Final = EVERYTHING._replace(soft=False)
"""All windows count, and runs until they can be stopped."""


class Diary:
    """Windows by number, and who they belong to."""

    def __init__(
        self, snapshot: Snapshot, booked: Iterable[Booked], claims: Iterable[Claim]
    ) -> None:
        self.book = SegmentBook()
        self._owners: list[Owner | None] = []
        self._free: list[int] = []
        self._number: dict[OccurrenceId, int] = {}
        self._slots: dict[int, list[int]] = {}
        self._claims: list[int] = []
        self.look(snapshot)
        for each in booked:
            self.add(each)
        self._bind(claims)

    def look(self, snapshot: Snapshot, claims: Iterable[Claim] = ()) -> None:
        """Take nodes, runs and guarantees as they are now; windows stay."""
        for number in self._claims:
            self._drop(number)
        self._claims = []
        self.terrain = Terrain(snapshot)
        self.book.look(snapshot)
        self.chooser = Chooser(self.terrain, self.book)
        every = chain.from_iterable(self._slots[number] for number in self._number.values())
        self._count(np.fromiter(every, np.int64), 1)
        self._bind(claims)

    def add(self, booked: Booked) -> None:
        """Enter a window, or replace the one of the same id."""
        self.remove(booked.id)
        span = (booked.start, booked.end)
        self._number[booked.id] = self._enter(booked, booked.parts, span, rank=booked.priority)

    def remove(self, id: OccurrenceId) -> bool:
        """Forget a window; False when it is not here."""
        number = self._number.pop(id, None)
        if number is not None:
            self._drop(number)
        return number is not None

    def get(self, id: OccurrenceId) -> Booked:
        """A window; raises LookupError."""
        owner = self._owners[self._number[id]]
        assert isinstance(owner, Booked)
        return owner

    def all(self) -> list[Booked]:
        """Every window by start, then id."""
        found = (self.get(id) for id in self._number)
        return sorted(found, key=lambda each: (each.start, each.id))

    def owner(self, item: int) -> Owner:
        """Whose pieces have this number."""
        owner = self._owners[item]
        assert owner is not None
        return owner

    def free(self, parts: Parts, span: tuple[float, float], view: View) -> bool:
        """Whether a place is free in a span; devices that failed are no reason why it is not."""
        rows = self.terrain.rows_of(parts)
        self.chooser.room(rows, [span], view)
        row_of = self.terrain.snapshot.row_of
        shares = [share for part in parts for share in part.shares if share.node in row_of]
        return all(self.chooser.has(row_of[share.node], share) for share in shares)

    def is_run_of(self, owners: Owners, slot: int) -> bool:
        """Whether the run in a slot of the snapshot is the owners'."""
        held = self.terrain.snapshot.running.holdings[slot]
        return owned_by(owners, held.queue, held.run.marks if held.run else ())

    def runs_of(self, owners: Owners, parts: Parts) -> list[int]:
        """Pieces of the owners' runs on the nodes of a place."""
        rows, columns = self.terrain.rows_of(parts), self.book.columns
        every = (EARLY, -EARLY, EVERYTHING, View(1 << 62, False))
        found = pieces(columns, self.book.head, rows, *every)
        runs = found[columns.item[found] < 0].tolist()
        return [seg for seg in runs if self.is_run_of(owners, -1 - int(columns.item[seg]))]

    @contextmanager
    def trial(self, hidden: Iterable[OccurrenceId] = ()) -> Iterator["Trial"]:
        """Windows taken as not there, and others as there, until the end of the block."""
        trial = Trial(self)
        try:
            trial.hide(hidden)
            yield trial
        finally:
            trial.undo()

    def _enter(self, owner: Owner, parts: Parts, span: tuple[float, float], *, rank: int) -> int:
        number = self._free.pop() if self._free else len(self._owners)
        if number == len(self._owners):
            self._owners.append(None)
        self._owners[number] = owner
        self._slots[number] = self.book.add(parts, span=span, rank=rank, item=number)
        self._count(np.array(self._slots[number], np.int64), 1)
        return number

    def _drop(self, number: int) -> None:
        self._count(np.array(self._slots[number], np.int64), -1)
        self.book.remove(self._slots.pop(number))
        self._owners[number] = None
        self._free.append(number)

    def _count(self, slots: Ints, sign: int) -> None:
        columns = self.book.columns
        rows = columns.row[slots]
        here = rows >= 0
        length = (columns.end[slots] - columns.start[slots])[here]
        np.add.at(self.chooser.booked_s, rows[here], sign * length)

    def _bind(self, claims: Iterable[Claim]) -> None:
        """Give guarantees nodes, as far as there are any: nobody else is to have those."""
        for claim in sorted(claims, key=lambda claim: (claim.start, claim.id)):
            span = (claim.start, claim.end)
            for what in _of_claim(claim):
                for pool in pools_of(self.terrain, what, nobody=False):
                    place = self.chooser.place(pool, [span], HARD)
                    if place is not None:
                        self._claims.append(self._enter(claim, place.parts, span, rank=TOP))


class Trial:
    """What is hidden and entered for a while."""

    def __init__(self, diary: Diary) -> None:
        self._diary = diary
        self._hidden: list[int] = []
        self._entered: list[int] = []

    def hide(self, ids: Iterable[OccurrenceId]) -> None:
        """Take windows as not there; those that are not are passed over."""
        diary = self._diary
        for number in (diary._number[id] for id in ids if id in diary._number):
            self.hide_pieces(diary._slots[number])

    def hide_pieces(self, slots: list[int]) -> None:
        """Take pieces as not there."""
        self._diary.book.hide(slots, True)
        self._hidden += slots

    def enter(self, booked: Booked) -> None:
        """Take a window as there."""
        span = (booked.start, booked.end)
        number = self._diary._enter(booked, booked.parts, span, rank=booked.priority)
        self._entered.append(number)

    def undo(self) -> None:
        """Leave the diary as it was."""
        for number in self._entered:
            self._diary._drop(number)
        self._diary.book.hide(self._hidden, False)


def _of_claim(claim: Claim) -> Iterator[What]:
    where = (claim.cluster,)
    whole, part = divmod(claim.blocks, BLOCKS_PER_DEVICE)
    if not claim.kind:
        yield What(nodes=WholeNodes(whole + (part > 0)), clusters=where)
        return
    # CPU and memory of the job are not known; its devices are what it waits for.
    for count, blocks in ((whole, BLOCKS_PER_DEVICE), (1 if part else 0, part)):
        if count:
            device = DeviceRequest(claim.kind, 1, blocks)
            yield What(amounts=(Amount(device, count, 0, 0),), clusters=where)
