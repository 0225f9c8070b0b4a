"""However seldom the loop looks, an occurrence is started once and ended once."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.model.booking import OccurrenceId, OnEnd
from atoll.core.model.ids import Tenant
from atoll.core.model.reservation import (
    Occurrence,
    Reservation,
    ReservationId,
    ReservationSpec,
    What,
    When,
    WholeNodes,
)
from atoll.core.model.reservation_lifecycle import (
    TERMINAL_OCCURRENCE,
    BookingEvent,
    next_occurrence_state,
)
from atoll.ports.store.bookings import Kept
from atoll.reservation.usecases.due import due, next_due

HORIZON = 400


def kept(number: int, start: int, length: int, **given_: object) -> Kept:
    when = When(float(length), start_at=float(start))
    spec = ReservationSpec(f"b{number}", What(nodes=WholeNodes(1)), when)
    spec = replace(spec, **given_)  # type: ignore[arg-type]
    booked = Reservation(ReservationId(number), spec, Tenant("t"), "ann", 0.0)
    at = Occurrence(OccurrenceId(number), booked.id, spec.name, float(start), float(start + length))
    return Kept(booked, at)


@st.composite
def bookings(draw: st.DrawFn) -> dict[int, Kept]:
    made = {}
    for number in range(1, draw(st.integers(1, 4)) + 1):
        on_end = draw(st.sampled_from([OnEnd.STOP, OnEnd.GRACE]))
        made[number] = kept(
            number,
            draw(st.integers(0, 200)),
            draw(st.integers(1, 100)),
            bind_before_s=float(draw(st.sampled_from([0, 10, 1_000]))),
            release_after_idle_s=float(draw(st.sampled_from([0, 5, 50]))),
            pinned=draw(st.booleans()),
            on_end=on_end,
            end_grace_s=20.0 if on_end is OnEnd.GRACE else 0.0,
        )
    return made


@given(bookings(), st.lists(st.integers(1, 80), min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_each_is_started_once_and_ended_once(made: dict[int, Kept], steps: list[int]) -> None:
    happened: Counter[tuple[int, BookingEvent]] = Counter()
    now = 0.0
    for step in [*steps, HORIZON]:
        now += step
        for _ in range(4):  # what one thing leads to may be due at once
            for each in due(made.values(), now):
                one = made[each.occurrence]
                state = next_occurrence_state(one.occurrence.state, each.event)
                assert state is not None
                began = now if each.event is BookingEvent.STARTED else one.occurrence.started_at
                at = replace(one.occurrence, state=state, started_at=began)
                made[each.occurrence] = replace(one, occurrence=at)
                happened[each.occurrence, each.event] += 1
        assert next_due(made.values(), now) > now
    assert max(happened.values()) == 1
    for number, one in made.items():
        assert one.occurrence.state in TERMINAL_OCCURRENCE
        over = (BookingEvent.ENDED, BookingEvent.RELEASED)
        assert sum(happened[number, event] for event in over) == 1
