"""What windows keep a job waiting, in words. Times are UTC."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.windows.bookings import Bookings, Claimant
from atoll.core.model.booking import Owners, Window
from atoll.core.model.reason import Reason, ReasonCode
from atoll.core.state.ragged import spans

Ints = NDArray[np.int64]
MOST_TOLD: Final = 8
"""Bookings that are named."""


def reserved(bookings: Bookings, who: Claimant, rows: Ints) -> Iterator[Reason]:
    """Whose bookings are in the way of a job on some rows, the first to begin first."""
    if who.reservation:
        message = f"not in booking {who.reservation}: {_nodes(len(rows))}"
        yield Reason(ReasonCode.RESERVED, message, count=len(rows))
        return
    layout, meets = bookings.layout, bookings.conflicts(who, bookings.now)
    window = layout.shares.window[spans(layout.first, rows)]
    of = np.repeat(np.arange(len(rows)), np.diff(layout.first)[rows])
    met = meets[window]
    pairs = np.unique(np.stack([window[met], of[met]]), axis=1)
    numbers, counts = np.unique(pairs[0], return_counts=True)
    told: dict[str, None] = {}
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        value = bookings.view.values[number]
        if value.booking not in told and len(told) < MOST_TOLD:
            told[value.booking] = None
            claimed = bool(bookings.view.claims[number])
            yield _held(value, count, bookings.now, claimed=claimed)


def own_booking(bookings: Bookings, who: Claimant) -> Iterator[Reason]:
    """What is to be said of the booking that a job asks for, first of all."""
    if not who.reservation:
        return
    name, now = who.reservation, bookings.now
    inside = bookings.inside(who, now)
    if inside.any():
        last = float(bookings.view.end[inside].max())
        message = f"booking {name} is open until {moment(last, now)}, and has no room left now"
        yield Reason(ReasonCode.RESERVED, message, metadata=(("booking", name),))
        return
    opens = opening(bookings, who)
    if opens is not None:
        message = f"booking {name} opens at {moment(opens, now)}"
        metadata = (("booking", name), ("opens_at", f"{opens:.3f}"))
        help_ = "wait until then; times are UTC"
        yield Reason(ReasonCode.BOOKING_NOT_OPEN, message, help=help_, metadata=metadata)
        return
    yield _never(bookings, who)


def opening(bookings: Bookings, who: Claimant) -> float | None:
    """When the next window begins in which a job that asks for a booking may run."""
    view = bookings.view
    numbers = [n for n in view.by_name.get(who.reservation, ()) if view.start[n] > bookings.now]
    for number in numbers:
        start = float(view.start[number])
        if bookings.inside(who, start)[number]:
            return start
    return None


def moment(at: float, now: float) -> str:
    """A time of day, with the date when that is another day than now."""
    then, today = (datetime.fromtimestamp(each, UTC) for each in (at, now))
    return f"{then:%H:%M}" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M}"


def whom(owners: Owners) -> str:
    """Such as `queue nlp`, `queues a, b, user alice`."""
    labels = [f"{key}={value}" for key, value in owners.labels]
    each = (("queue", owners.queues), ("user", owners.users), ("label", labels))
    words = [f"{word}{'s' * (len(of) > 1)} {', '.join(of)}" for word, of in each if of]
    return ", ".join(words) or "maintenance"


def _held(window: Window, rows: int, now: float, *, claimed: bool) -> Reason:
    end, who = moment(window.end, now), whom(window.owners)
    if claimed:
        message = f"kept until {end} for a job of {who} whose deadline is guaranteed"
    elif window.start <= now:
        message = f"held until {end} for {who}, booking {window.booking}"
    else:
        start = moment(window.start, now)
        message = f"held from {start} until {end} for {who}, booking {window.booking}"
    return Reason(
        ReasonCode.RESERVED,
        f"{message}: {_nodes(rows)}",
        cluster=window.cluster,
        count=rows,
        help=_help(window, now),
        metadata=(
            ("booking", window.booking),
            ("from", f"{window.start:.3f}"),
            ("until", f"{window.end:.3f}"),
        ),
    )


def _help(window: Window, now: float) -> str:
    if window.start <= now:
        return "wait until then; times are UTC"
    lends = ", or let it be preemptible" if window.lends else ""
    return f"give it a time limit by which it ends before{lends}; times are UTC"


def _never(bookings: Bookings, who: Claimant) -> Reason:
    name = who.reservation
    if name not in bookings.view.by_name:
        message = f"no booking {name} is to come"
    elif not bookings.owned(who.queue, who.marks)[list(bookings.view.by_name[name])].any():
        message = f"booking {name} is not for jobs of queue {who.queue}"
    else:
        message = f"no window of booking {name} is as long as its time limit"
    return Reason(
        ReasonCode.BOOKING_NOT_OPEN,
        message,
        help="ask for another booking, or for none",
        metadata=(("booking", name),),
    )


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
