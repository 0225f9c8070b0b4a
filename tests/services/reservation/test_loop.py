from dataclasses import replace

import pytest

from atoll.core.model.errors import StaleEpoch
from atoll.core.model.ids import DEFAULT_SHARD
from atoll.core.model.reservation import OccurrenceState, ReservationState, When
from atoll.ports.store.bookings import BookingRetention, OccurrenceFilter
from atoll.reservation.usecases.give_back import Which
from tests.adapters.store_builders import node
from tests.services.reservation.worlds import ANN, HOUR, TENANT, World, places, spec

SOON = 2 * HOUR


async def test_a_booking_is_bound_started_and_ended_once_each(timed: World) -> None:
    await timed.cluster("n1")
    made = await timed.book(spec("exam", timed.clock.now() + SOON))
    term = await timed.term()
    assert await timed.look(term) == []
    await timed.pass_time(HOUR)
    assert await timed.look(term) == ["bound"]
    await timed.service.replica.follow()
    assert term.next_due(timed.clock.now()) == made.occurrences[0].start_at
    await timed.pass_time(HOUR)
    assert await timed.look(term) == ["started"]
    assert await timed.look(term) == []
    (window,) = (await timed.store.placement.load(DEFAULT_SHARD)).windows
    assert window.open
    await timed.pass_time(HOUR)
    assert await timed.look(term) == ["ended"]
    (window,) = (await timed.store.placement.load(DEFAULT_SHARD)).windows
    assert not window.open
    await timed.pass_time(HOUR)
    assert (await timed.store.placement.load(DEFAULT_SHARD)).windows == ()
    assert await term.retire() == 1
    assert (await timed.shown(made)).reservation.state is ReservationState.ENDED
    events = [(e.event.value, e.at) for e in await timed.events(made.reservation.id)]
    assert [event for event, _ in events] == [
        "created", "bound", "started", "ended", "ended",
    ]  # fmt: skip


async def test_a_new_leader_does_not_start_again_what_runs(timed: World) -> None:
    await timed.cluster("n1")
    made = await timed.book(spec("exam", timed.clock.now() + SOON))
    old = await timed.term()
    await timed.pass_time(SOON)
    assert await timed.look(old) == ["started"]
    other = timed.another()
    new = await timed.term(other)
    assert await timed.look(new) == []
    # The old one still believes in itself, and has not seen what it did.
    await timed.pass_time(HOUR)
    with pytest.raises(StaleEpoch):
        await timed.look(old)
    assert await timed.look(new) == ["ended"]
    events = [e.event.value for e in await timed.events(made.reservation.id)]
    assert events.count("started") == events.count("ended") == 1
    await other.close()


async def test_a_loop_that_was_away_ends_what_is_over(timed: World) -> None:
    await timed.cluster("n1")
    await timed.book(spec("exam", timed.clock.now() + SOON))
    term = await timed.term()
    await timed.pass_time(SOON + 2 * HOUR)
    assert await timed.look(term) == ["ended"]


async def test_a_node_that_fails_is_replaced(world: World) -> None:
    await world.cluster("n1", "n2")
    made = await world.book(spec("exam", world.clock.now() + SOON))
    term = await world.term()
    await world.look(term)
    (before,) = places(made.occurrences)
    down = [node(name, gpus=8, up=name not in before) for name in ("n1", "n2")]
    await world.inventory(*down)
    assert await world.look(term) == ["moved"]
    (after,) = places((await world.shown(made)).occurrences)
    assert after == {"n1", "n2"} - before
    assert await world.look(term) == []


async def test_a_node_that_fails_while_it_runs_is_replaced(timed: World) -> None:
    await timed.cluster("n1", "n2", "n3")
    made = await timed.book(spec("exam", timed.clock.now() + SOON, units=2))
    term = await timed.term()
    await timed.pass_time(SOON)
    await timed.look(term)
    (before,) = places(made.occurrences)
    gone = min(before)
    await timed.inventory(*(node(n, gpus=8) for n in ("n1", "n2", "n3") if n != gone))
    assert await timed.look(term) == ["moved"]
    (occurrence,) = (await timed.shown(made)).occurrences
    assert places([occurrence]) == [{"n1", "n2", "n3"} - {gone}]
    assert occurrence.state is OccurrenceState.RUNNING


async def test_what_cannot_be_replaced_is_told_until_it_can(timed: World) -> None:
    await timed.cluster("n1", "n2")
    made = await timed.book(spec("exam", timed.clock.now() + SOON, units=2))
    term = await timed.term()
    await timed.look(term)
    await timed.inventory(node("n1", gpus=8), node("n2", gpus=8, up=False))
    assert await timed.look(term) == ["short"]
    (short,) = (await timed.shown(made)).occurrences
    assert short.missing_devices == 8
    assert await timed.look(term) == []
    assert term.missing == 8
    await timed.inventory(node("n1", gpus=8), node("n2", gpus=8))
    await timed.pass_time(6)
    assert await timed.look(term) == ["moved"]
    (whole,) = (await timed.shown(made)).occurrences
    assert (whole.missing_devices, places([whole])) == (0, [{"n1", "n2"}])


async def test_a_window_that_nobody_uses_is_given_back(timed: World) -> None:
    await timed.cluster("n1")
    start = timed.clock.now() + SOON
    made = await timed.book(spec("exam", start, release_after_idle_s=600))
    term = await timed.term()
    await timed.pass_time(SOON)
    await timed.look(term)
    await timed.pass_time(599)
    await term.measure()
    assert await timed.look(term) == []
    await timed.pass_time(1)
    assert await timed.look(term) == ["released"]
    every = OccurrenceFilter(TENANT, over=True)
    gone = await timed.use.looker.occurrences(every, size=10, token="")
    (occurrence,) = gone.occurrences
    assert occurrence.state is OccurrenceState.RELEASED
    assert "600" in occurrence.message
    assert occurrence.used_device_hours == 0
    assert made.reservation.id == occurrence.reservation


async def test_recurrences_are_planned_on(timed: World) -> None:
    await timed.cluster("n1")
    day = 24 * HOUR
    weekly = When(length_s=HOUR, start_at=timed.clock.now() + SOON, rrule="FREQ=WEEKLY;COUNT=20")
    made = await timed.book(spec("course", 0, when=weekly))
    term = await timed.term()
    assert (made.planned, await term.plan_on()) == (13, 0)
    await timed.pass_time(60 * day)
    assert await term.plan_on() == 7
    # In its way now: the others are planned all the same.
    assert (await timed.shown(made)).planned == 20
    assert await term.plan_on() == 0


async def test_a_recurrence_without_room_says_so_and_takes_it_when_there_is(timed: World) -> None:
    await timed.cluster("n1")
    week = 7 * 24 * HOUR
    start = timed.clock.now() + SOON
    weekly = When(length_s=HOUR, start_at=start, rrule="FREQ=WEEKLY")
    made = await timed.book(spec("course", 0, when=weekly))
    late = await timed.book(spec("late", start + 14 * week))
    term = await timed.term()
    await timed.pass_time(20 * 24 * HOUR)
    await term.ground.replica.follow()
    assert await term.plan_on() > 1
    found = {o.start_at: o for o in (await timed.shown(made)).occurrences}
    waits = found[start + 14 * week]
    assert (waits.parts, waits.missing_devices) == ((), 1)
    assert places([found[start + 15 * week]]) == [{"n1"}]
    events = await timed.events(made.reservation.id)
    assert [e.event.value for e in events] == ["created", "short"]
    assert "late" in events[-1].message
    await timed.use.ender.cancel(ANN, Which(late.reservation.id), reason="")
    await timed.pass_time(start + 14 * week - HOUR - timed.clock.now())
    while done := await timed.look(term):
        assert set(done) <= {"started", "ended", "bound", "moved"}
    found = {o.id: o for o in (await timed.shown(made)).occurrences}
    assert (found[waits.id].missing_devices, places([found[waits.id]])) == (0, [{"n1"}])


async def test_what_is_long_over_is_forgotten(timed: World) -> None:
    await timed.cluster("n1")
    made = await timed.book(spec("exam", timed.clock.now() + SOON))
    term = await timed.term()
    await timed.pass_time(SOON + 2 * HOUR)
    await timed.look(term)
    await term.retire()
    keep = BookingRetention(reservations_s=3600)
    store = timed.store.reservation
    assert await store.prune(keep) == 0
    await timed.pass_time(2 * HOUR)
    await store.prune(replace(keep, events_s=1e9))
    listed = await store.get(made.reservation.tenant, made.reservation.id)
    assert listed is None
