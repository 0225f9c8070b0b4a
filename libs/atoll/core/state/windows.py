"""Windows of bookings in arrays: made when they change, and shared by all snapshots until then.

W windows in the order of their starts, with S shares of nodes. A window that is over is left
out; whoever holds a view past an end asks for the next one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.booking import (
    STOP_MARGIN_S,
    OccurrenceId,
    OnEnd,
    Window,
    promise_mark,
)
from atoll.core.model.ids import AttemptId, QueueName
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.plan import Eviction
from atoll.core.state.ledger import Ledger
from atoll.core.state.mig import grant_bits
from atoll.core.state.ragged import offsets
from atoll.core.state.running import Running
from atoll.core.state.window_layout import Layout, Shares, joined_shares, layout

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_ORDER: Final = attrgetter("start", "id", "cluster")


@dataclass(slots=True, eq=False)
class WindowView:
    """All windows that are not over. Nothing in it is to be written."""

    values: tuple[Window, ...]
    start: Floats
    end: Floats
    lasts: Floats
    """When owners' runs have to have ended; infinity where they may go on."""
    lends: Bools
    stops: Bools
    """Owners' runs stop at the end, not later."""
    is_open: Bools
    """The reservation service has begun it."""
    shares: Shares
    by_queue: Mapping[QueueName, Sequence[int]]
    """Windows by a queue that owns them; those of its ancestors are not repeated."""
    by_mark: Mapping[str, Sequence[int]]
    by_name: Mapping[str, Sequence[int]]
    """Windows by their booking."""
    ended: Bools
    """Only their owners' jobs are left there, for the time that they are given."""
    by_end: Floats
    """All ends in order."""
    by_last: Floats
    """All that `lasts` has of times, in order."""
    claims: Bools
    """Of a cycle alone: for guaranteed deadlines."""
    _layout: Layout | None = None

    def __len__(self) -> int:
        return len(self.values)

    def on(self, ids: Ints, devices: int) -> Layout:
        """The shares by rows of a node table, whose nodes are `ids` with so many devices."""
        known = self._layout
        if known is None or known.devices != devices or not np.array_equal(known.ids, ids):
            starts = np.where(self.ended, np.inf, self.start)
            known = self._layout = layout(
                self.shares, ids, start=starts, lends=self.lends, devices=devices
            )
        return known


class _Flat(NamedTuple):
    """The shares of one window."""

    node: Ints
    whole: Bools
    cpu: Ints
    memory: Ints
    grants: Ints
    """By share: how many."""
    device: Ints
    blocks: Ints
    bits: Ints


class WindowBook:
    """Windows of a world; the ledger has the same."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._flat: dict[OccurrenceId, tuple[_Flat, ...]] = {}
        self._view: WindowView | None = None
        self._until = float("inf")
        """When the next window of the view ends."""
        self.due = False
        """Somebody is to be stopped or may start, though no job came and nothing came free."""
        self._stops: tuple[AttemptId, ...] = ()
        """Runs that the last plan has stopped for bookings."""

    def set(self, windows: Iterable[Window]) -> None:
        """Replace all windows."""
        self._ledger.booked.clear()
        self._flat.clear()
        self.put(windows)

    def put(self, windows: Iterable[Window]) -> None:
        """Enter or replace windows, all those of an occurrence at once."""
        grouped: defaultdict[OccurrenceId, list[Window]] = defaultdict(list)
        for window in windows:
            grouped[window.id].append(window)
        for number, parts in grouped.items():
            self._ledger.booked.put(number, parts)
            self._flat[number] = tuple(map(_flat, parts))
        self._view, self.due = None, True

    def drop(self, ids: Iterable[OccurrenceId]) -> bool:
        """Forget occurrences; whether one of them was here."""
        gone = [number for number in ids if self._ledger.booked.drop(number)]
        for number in gone:
            del self._flat[number]
        if gone:
            self._view, self.due = None, True
        return bool(gone)

    def advance(self, before: float, now: float, running: Running) -> bool:
        """It is `now` after `before`; whether something has begun, ended or is to be stopped."""
        self._ledger.now = max(now, self._ledger.now)
        if not self._ledger.booked:
            return False
        passed = self.next_time(before, running) <= now
        gone_wrong = bool(self._stops) and _goes_on(running, self._stops)
        self._stops = ()
        self.due |= passed or gone_wrong
        return passed

    def planned(self, evictions: Sequence[Eviction]) -> None:
        """A plan has stopped some runs; they are looked at again unless they were told."""
        self.due = False
        booked = (e.attempt for e in evictions if e.cause is StopCause.BOOKING)
        self._stops = tuple(booked)

    def next_time(self, now: float, running: Running) -> float:
        """The first moment after `now` at which waiting alone changes what may run."""
        if not self._ledger.booked:
            return float("inf")
        view = self.freeze(now)
        graces = np.unique(running.runs.grace_s[running.live])
        stops = np.concatenate([np.zeros(1), graces + STOP_MARGIN_S])
        times = (_after(view.start, now, stops), _after(view.by_last, now, stops))
        return min(*times, _after(view.by_end, now, np.zeros(1)))

    def freeze(self, now: float) -> WindowView:
        """The windows that are not over at wall time `now`."""
        if self._view is None or now >= self._until:
            parts = [
                (window, flat)
                for number, windows in self._ledger.booked.all().items()
                for window, flat in zip(windows, self._flat[number], strict=True)
                if window.kept_until > now
            ]
            parts.sort(key=lambda part: _ORDER(part[0]))
            ends = (w.end if w.end > now else w.kept_until for w, _ in parts)
            self._until = min(ends, default=float("inf"))
            self.drop([each for each in self._ledger.booked.all() if self._is_over(each, now)])
            self._view = _view(parts, now)
        return self._view

    def _is_over(self, number: OccurrenceId, now: float) -> bool:
        return all(window.kept_until <= now for window in self._ledger.booked.all()[number])


def beside(view: WindowView, claims: Sequence[Window]) -> WindowView:
    """The view with windows for guaranteed deadlines behind all others; their jobs own them."""
    if not claims:
        return view
    count, more = len(view), _view([(window, _flat(window)) for window in claims], 0.0)
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, window in enumerate(claims, count):
        for queue in window.owners.queues:
            numbers[promise_mark(queue)].append(number)
    return replace(
        view,
        values=(*view.values, *claims),
        start=np.concatenate([view.start, more.start]),
        end=np.concatenate([view.end, more.end]),
        lasts=np.concatenate([view.lasts, more.lasts]),
        lends=np.concatenate([view.lends, more.lends]),
        stops=np.concatenate([view.stops, more.stops]),
        is_open=np.concatenate([view.is_open, more.is_open]),
        ended=np.concatenate([view.ended, more.ended]),
        shares=joined_shares(view.shares, more.shares, count),
        by_mark={**view.by_mark, **numbers},
        claims=np.concatenate([view.claims, np.ones(len(claims), np.bool_)]),
        _layout=None,
    )


def no_windows() -> WindowView:
    """Nothing is booked."""
    return _view((), 0.0)


def _goes_on(running: Running, attempts: Sequence[AttemptId]) -> bool:
    going = running.runs.attempt[running.live & ~running.stopping]
    return bool(np.isin(np.array(attempts, np.int64), going).any())


def _after(times: Floats, now: float, before: Floats) -> float:
    """The first of sorted times, less one of `before` each, that is after `now`."""
    at = np.searchsorted(times, now + before, side="right")
    inside = at < len(times)
    return float((times[at[inside]] - before[inside]).min(initial=np.inf))


def _view(parts: Sequence[tuple[Window, _Flat]], now: float) -> WindowView:
    windows = tuple(window for window, _ in parts)
    by_queue, by_mark, by_name = (defaultdict[str, list[int]](list) for _ in range(3))
    for number, window in enumerate(windows):
        by_name[window.booking].append(number)
        for queue in window.owners.queues:
            by_queue[queue].append(number)
        for mark in window.owners.marks:
            by_mark[mark].append(number)
    end = np.array([w.end for w in windows], np.float64)
    lasts = np.fromiter((w.runs_until for w in windows), np.float64, len(windows))
    return WindowView(
        values=windows,
        start=np.array([w.start for w in windows], np.float64),
        end=end,
        lasts=lasts,
        lends=np.array([w.lends for w in windows], np.bool_),
        stops=np.array([w.on_end is OnEnd.STOP for w in windows], np.bool_),
        is_open=np.array([w.open for w in windows], np.bool_),
        shares=_shares([flat for _, flat in parts]),
        by_queue={QueueName(name): numbers for name, numbers in by_queue.items()},
        by_mark=dict(by_mark),
        by_name=dict(by_name),
        ended=end <= now,
        by_end=np.sort(end),
        by_last=np.sort(lasts[np.isfinite(lasts)]),
        claims=np.zeros(len(windows), np.bool_),
    )


def _shares(flats: Sequence[_Flat]) -> Shares:
    sizes = np.array([len(flat.node) for flat in flats], np.int64)
    columns = [np.concatenate(column) for column in zip(*flats, strict=True)] or [
        np.zeros(0, kind) for kind in (np.int64, np.bool_, *[np.int64] * 6)
    ]
    node, whole, cpu, memory, grants, device, blocks, bits = columns
    window = np.repeat(np.arange(len(flats)), sizes)
    return Shares(window, node, whole, cpu, memory, offsets(grants), device, blocks, bits)


def _flat(window: Window) -> _Flat:
    shares = window.shares
    grants = [grant for share in shares for grant in share.devices]
    return _Flat(
        node=np.array([share.node for share in shares], np.int64),
        whole=np.array([share.whole for share in shares], np.bool_),
        cpu=np.array([share.cpu_milli for share in shares], np.int64),
        memory=np.array([share.memory_bytes for share in shares], np.int64),
        grants=np.array([len(share.devices) for share in shares], np.int64),
        device=np.array([grant.index for grant in grants], np.int64),
        blocks=np.array([grant.blocks for grant in grants], np.int64),
        bits=np.array([grant_bits(g.profile, g.slice_mask) for g in grants], np.int64),
    )
