"""What the calendar accepts is kept, second by second; and it finds what there is."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.bookings.answers import Accepted, Booked, Query, Refused, Span
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.model.reservation import Amount, Preference, ReservationSpec, What, WholeNodes
from atoll.core.model.resources import DeviceRequest
from tests.core.bookings.small import (
    HORIZON,
    KIND,
    Small,
    enter,
    free_units,
    is_complete,
    is_free,
    overbooked,
    smalls,
    specs,
)


def asked(calendar: Calendar, spec: ReservationSpec) -> Accepted | Refused:
    start = spec.when.start_at
    spans = [] if start is None else [Span(start, start + spec.when.length_s)]
    return calendar.accept(spec, spans, now=0.0)


def filled(small: Small, wanted: Sequence[ReservationSpec]) -> Calendar:
    calendar = small.calendar()
    for number, spec in enumerate(wanted, 1):
        answer = asked(calendar, spec)
        if isinstance(answer, Accepted):
            enter(calendar, number, spec, answer)
    return calendar


@given(smalls(mig=True), st.lists(specs(mig=True), max_size=8))
@settings(max_examples=120, deadline=None)
def test_no_accepted_booking_is_ever_short(small: Small, wanted: list[ReservationSpec]) -> None:
    calendar = filled(small, wanted)
    assert overbooked(small, calendar.booked()) == []
    assert all(is_complete(small, window) for window in calendar.booked())


@given(smalls(mig=True), st.lists(specs(mig=True), max_size=6), specs(mig=True))
@settings(max_examples=80, deadline=None)
def test_overriding_takes_nothing_from_equal_or_higher_ones(
    small: Small, wanted: list[ReservationSpec], last: ReservationSpec
) -> None:
    calendar = filled(small, wanted)
    before = {window.id: window for window in calendar.booked()}
    answer = asked(calendar, last)
    assert {window.id: window for window in calendar.booked()} == before  # asking changes nothing
    moves = answer.moves if isinstance(answer, Accepted) else ()
    assert all(before[move.id].priority < last.priority for move in moves)
    assert last.override or not moves
    if isinstance(answer, Accepted):
        enter(calendar, 99, last, answer)
        gone = {move.id for move in moves if move.cancelled}
        untouched = set(before) - {move.id for move in moves}
        after = {window.id: window for window in calendar.booked()}
        assert all(after[id] == before[id] for id in untouched)
        assert set(before) - set(after) == gone
        assert overbooked(small, after.values()) == []


@given(smalls(mig=True), st.lists(specs(mig=True), max_size=6))
@settings(max_examples=50, deadline=None)
def test_a_calendar_made_anew_answers_the_same(small: Small, wanted: list[ReservationSpec]) -> None:
    grown = filled(small, wanted)
    anew = Calendar(small.world().look(0.0), grown.booked())
    grown.look(small.world().look(0.0))
    for step in (1.0, 7.0):
        assert grown.availability(0.0, 24.0, step=step) == anew.availability(0.0, 24.0, step=step)
    for window in grown.booked():
        query = Query(window.what, 2.0, 0.0, float(HORIZON))
        found = [(each.start_at, each.cost) for each in grown.find(query, now=0.0).windows]
        assert found == [(each.start_at, each.cost) for each in anew.find(query, now=0.0).windows]


WHOLE = [
    *(What(amounts=(Amount(DeviceRequest(KIND, n), k),)) for n in (1, 2, 3) for k in (1, 2, 3)),
    What(nodes=WholeNodes(1)),
    What(nodes=WholeNodes(2)),
]


@pytest.mark.parametrize("preference", [Preference.EARLY, Preference.LATE])
@given(smalls(), st.lists(specs(), max_size=8), st.sampled_from(WHOLE), st.integers(1, 8))
@settings(max_examples=120, deadline=None)
def test_nothing_better_is_overlooked(
    preference: Preference, small: Small, wanted: list[ReservationSpec], what: What, length: int
) -> None:
    calendar = filled(small, wanted)
    windows = calendar.booked()
    query = Query(what, float(length), 0.0, float(HORIZON), preference=preference)
    found = calendar.find(query, now=0.0)
    starts = [at for at in range(HORIZON - length + 1) if fits(small, windows, what, at, length)]
    best = (starts[:1] if preference is Preference.EARLY else starts[-1:]) or None
    assert [each.start_at for each in found.windows[:1]] == (best or [])
    assert bool(found.obstacles) == (best is None)
    assert all(fits(small, windows, what, int(w.start_at), length) for w in found.windows)


def fits(small: Small, windows: Sequence[Booked], what: What, start: int, length: int) -> bool:
    span = range(start, start + length)
    for cluster in ("a", "b"):
        nodes = [node for node in small.nodes if node.cluster == cluster]
        if what.nodes is not None:
            if sum(is_free(small, windows, node, span) for node in nodes) >= what.nodes.count:
                return True
            continue
        amount = what.amounts[0]
        assert amount.device is not None
        units = sum(free_units(small, windows, n, span) // amount.device.count for n in nodes)
        if units >= amount.count:
            return True
    return False
