"""Another end for a window: on the nodes that it has, or if it has not begun on others."""

from dataclasses import replace

from atoll.core.engine.bookings.accepting import Asked, Desk
from atoll.core.engine.bookings.answers import Accepted, Booked, Refused, Span
from atoll.core.engine.bookings.diary import Diary
from atoll.core.engine.bookings.fitting import Fit, views
from atoll.core.engine.bookings.wanted import pools_of


def extend(diary: Diary, booked: Booked, end: float, *, now: float) -> Accepted | Refused:
    """The window with another end, and who gives way to it."""
    owners = booked.owners
    asked = Asked(booked.name, booked.what, owners, owners.nobody, booked.priority, views(None))
    span = Span(booked.start, end)
    with diary.trial([booked.id]) as trial:
        desk = Desk(diary, trial, asked, now)
        if end <= booked.end:
            return desk.accepted([span], [Fit(booked.parts, asked.allowed[0])])
        # Its owners' runs may go on there, and are in nobody's way.
        trial.hide_pieces(diary.runs_of(owners, booked.parts))
        # What it has until now is its own, only what comes behind must be free.
        added = Span(max(booked.end, now), end)
        for view in asked.allowed:
            if diary.free(booked.parts, (added.start, added.end), view):
                made = desk.accepted([added], [Fit(booked.parts, view)])
                placed = replace(made.placed[0], start=booked.start)
                return replace(made, placed=(placed,))
        if not (booked.running or booked.pinned):
            diary.chooser.prefer(diary.terrain.rows_of(booked.parts))
            return desk.spans([span])
        pools = pools_of(diary.terrain, booked.what, nobody=owners.nobody)
        return desk.refused(pools, (added.start, added.end))
