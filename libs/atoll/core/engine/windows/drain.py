"""Who is stopped so that a window has its place when it begins, and is left when it ends.

A run is told so early that its grace is over by then. What lends to those that may be stopped
lends on: they go when an owner's job comes, or waits for the beginning.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.windows.bookings import Bookings
from atoll.core.engine.windows.work import Work, owners, work_on
from atoll.core.model.booking import STOP_MARGIN_S
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.plan import Eviction
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.state.ragged import spans
from atoll.core.state.running import Running

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def evicted(running: Running, slots: Iterable[int]) -> tuple[Eviction, ...]:
    """Stops for bookings, by attempt."""
    held = sorted((running.holdings[slot] for slot in slots), key=lambda holding: holding.attempt)
    return tuple(Eviction(h.attempt, h.cluster, StopCause.BOOKING) for h in held)


def overdue(bookings: Bookings) -> set[int]:
    """Slots of runs that are to be told to stop by now."""
    running = bookings.snapshot.running
    if not bookings or not running.live.any():
        return set()
    ahead = float(running.runs.grace_s[running.live].max()) + STOP_MARGIN_S
    view = bookings.view
    starts = (view.start <= bookings.now + ahead) & ~view.ended & ~view.claims
    ends = bookings.view.lasts <= bookings.now + ahead
    zone = starts | ends
    if not zone.any():
        return set()
    rows = np.zeros(len(bookings.layout.ids), np.bool_)
    rows[bookings.rows_of(zone)] = True
    look = _Look(bookings, work_on(bookings.snapshot, rows, None, now=bookings.now))
    return look.in_the_way(starts) | look.too_long(ends, bookings.view.lasts)


@dataclass(slots=True)
class _Look:
    """What runs on some rows, against the windows there."""

    bookings: Bookings
    work: Work
    keys: Ints = field(init=False)
    """(L) rows of `owns`."""
    owns: Bools = field(init=False)
    """(keys, W)."""
    by_row: dict[int, list[int]] = field(init=False)
    """Tasks."""

    def __post_init__(self) -> None:
        self.keys, self.owns = owners(self.bookings, self.work)
        self.by_row = defaultdict(list)
        for task, row in enumerate(self.work.row.tolist()):
            self.by_row[row].append(task)

    def in_the_way(self, windows: Bools) -> set[int]:
        """Slots that are to be told to stop for a window that begins, or has begun."""
        due: set[int] = set()
        for share, tasks in self._suspects(windows):
            start = float(self.bookings.view.start[self._window(share)])
            for load in self._chosen(share, tasks):
                if self._is_due(load, start):
                    due.add(int(self.work.slot[load]))
        return due

    def too_long(self, windows: Bools, ends: Floats) -> set[int]:
        """Slots of owners' runs that are to have ended when their window does."""
        due: set[int] = set()
        shares = self.bookings.layout.shares
        for share in np.flatnonzero(windows[shares.window]).tolist():
            window, row = self._window(share), int(shares.node[share])
            for task in self.by_row.get(row, ()):
                load = int(self.work.load[task])
                if not self._came_with(load, window) or not self._is_inside(share, task):
                    continue
                last = float(ends[window])
                if self.work.ends[load] > last and self._is_due(load, last):
                    due.add(int(self.work.slot[load]))
        return due

    def _window(self, share: int) -> int:
        return int(self.bookings.layout.shares.window[share])

    def _is_due(self, load: int, time: float) -> bool:
        running, slot = self.bookings.snapshot.running, int(self.work.slot[load])
        if running.stopping[slot]:
            return False
        return bool(self.bookings.now >= time - running.runs.grace_s[slot] - STOP_MARGIN_S)

    def _suspects(self, windows: Bools) -> Iterator[tuple[int, list[int]]]:
        """Shares with tasks on their rows that may be in the way, and these tasks."""
        shares, view, work = self.bookings.layout.shares, self.bookings.view, self.work
        order = np.argsort(work.row, kind="stable")
        first = np.searchsorted(work.row[order], np.arange(len(self.bookings.layout.ids) + 1))
        chosen = np.flatnonzero(windows[shares.window])
        task = order[spans(first, shares.node[chosen])]
        share = np.repeat(chosen, np.diff(first)[shares.node[chosen]])
        load, window = work.load[task], shares.window[share]
        lent = view.lends[window] & self.bookings.snapshot.running.runs.preemptible[work.slot[load]]
        late = (work.ends[load] > view.start[window]) | (view.start[window] <= self.bookings.now)
        wrong = np.flatnonzero(~self.owns[self.keys[load], window] & ~lent & late)
        found: dict[int, list[int]] = defaultdict(list)
        for at in wrong.tolist():
            found[int(share[at])].append(int(task[at]))
        yield from sorted(found.items())

    def _chosen(self, share: int, tasks: Sequence[int]) -> set[int]:
        """Loads that have to go so that all of a share is free."""
        shares, work = self.bookings.layout.shares, self.work
        if shares.whole[share]:
            return {int(work.load[task]) for task in tasks}
        start = float(self.bookings.view.start[self._window(share)])
        order = sorted(tasks, key=lambda task: self._cheapness(task, start))
        gone: set[int] = set()
        for grant in range(int(shares.first_grant[share]), int(shares.first_grant[share + 1])):
            self._clear_device(grant, order, gone)
        self._clear_amounts(share, order, gone)
        return gone

    def _cheapness(self, task: int, start: float) -> tuple[bool, bool, float, int]:
        runs, load = self.bookings.snapshot.running.runs, self._load(task)
        slot = int(self.work.slot[load])
        late = bool(self.work.ends[load] <= start)
        preemptible = bool(runs.preemptible[slot])
        return not late, not preemptible, -float(runs.started_at[slot]), int(runs.attempt[slot])

    def _clear_device(self, grant: int, tasks: Sequence[int], gone: set[int]) -> None:
        shares = self.bookings.layout.shares
        device, bits = int(shares.device[grant]), int(shares.bits[grant])
        room = BLOCKS_PER_DEVICE - int(shares.blocks[grant])
        there = [(task, *self._on_device(task, device)) for task in tasks]
        used = sum(blocks for task, blocks, _ in there if self._load(task) not in gone)
        for task, blocks, theirs in there:
            # A device is handed out in blocks or in slices, never both ways at a time.
            mixed = (bits and blocks) or (shares.blocks[grant] and theirs)
            if mixed or bits & theirs or (blocks and used > room):
                used -= 0 if self._load(task) in gone else blocks
                gone.add(self._load(task))

    def _clear_amounts(self, share: int, tasks: Sequence[int], gone: set[int]) -> None:
        shares, nodes = self.bookings.layout.shares, self.bookings.snapshot.nodes
        row = int(shares.node[share])
        for name in ("cpu", "memory"):
            amount = getattr(self.work, name)
            left = int(getattr(nodes, f"{name}_cap")[row]) - self._booked(share, name)
            stays = [task for task in tasks if not self._is_owner_there(task, share)]
            used = sum(int(amount[t]) for t in stays if self._load(t) not in gone)
            for task in stays:
                if used <= left:
                    break
                if self._load(task) not in gone and amount[task]:
                    used -= int(amount[task])
                    gone.add(self._load(task))

    def _booked(self, share: int, name: str) -> int:
        """What this and other windows have of the node when this one begins."""
        view, layout = self.bookings.view, self.bookings.layout
        moment = max(float(view.start[self._window(share)]), self.bookings.now)
        row = int(layout.shares.node[share])
        here = np.arange(layout.first[row], layout.first[row + 1])
        window = layout.shares.window[here]
        active = (view.start[window] <= moment) & (moment < view.end[window])
        return int(getattr(layout.shares, name)[here[active]].sum())

    def _is_owner_there(self, task: int, share: int) -> bool:
        """Whether a task is in another window on its row, of its own."""
        layout, row = self.bookings.layout, int(self.bookings.layout.shares.node[share])
        others = layout.shares.window[layout.first[row] : layout.first[row + 1]]
        return bool(self.owns[self.keys[self._load(task)], others].any())

    def _load(self, task: int) -> int:
        return int(self.work.load[task])

    def _on_device(self, task: int, device: int) -> tuple[int, int]:
        work = self.work
        grants = slice(int(work.first_grant[task]), int(work.first_grant[task + 1]))
        here = work.device[grants] == device
        bits = np.bitwise_or.reduce(work.bits[grants][here]) if here.any() else 0
        return int(work.blocks[grants][here].sum()), int(bits)

    def _came_with(self, load: int, window: int) -> bool:
        """Whether an owner's run began in the window, and not before it as any other."""
        if not self.owns[self.keys[load], window]:
            return False
        running, slot = self.bookings.snapshot.running, int(self.work.slot[load])
        run, name = running.holdings[slot].run, self.bookings.view.values[window].booking
        asked = run is not None and run.reservation == name
        view, at = self.bookings.view, running.runs.started_at[slot]
        # Who came after the end is there like anybody else.
        return asked or bool(view.start[window] <= at < view.end[window])

    def _is_inside(self, share: int, task: int) -> bool:
        shares, work = self.bookings.layout.shares, self.work
        booked = shares.device[int(shares.first_grant[share]) : int(shares.first_grant[share + 1])]
        grants = slice(int(work.first_grant[task]), int(work.first_grant[task + 1]))
        if shares.whole[share] or not (len(booked) and len(work.device[grants])):
            return True
        return bool(np.isin(work.device[grants], booked).any())
