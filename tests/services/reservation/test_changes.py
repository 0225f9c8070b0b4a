import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from atoll.core.model.booking import OccurrenceId, OnEnd
from atoll.core.model.errors import Aborted, DomainError, ErrorCode, InvalidInput, NotFound
from atoll.core.model.refusal import BookingRefused
from atoll.core.model.reservation import (
    NO_OCCURRENCE,
    OccurrenceState,
    ReservationSpec,
    ReservationState,
    When,
)
from atoll.reservation.usecases.change import Update
from atoll.reservation.usecases.create import Made
from atoll.reservation.usecases.give_back import Which
from tests.adapters.store_builders import node
from tests.services.reservation.worlds import ANN, HOUR, World, places, spec

SOON = 2 * HOUR


def which(made: Made, occurrence: int = 0, *, etag: int = 0) -> Which:
    return Which(made.reservation.id, OccurrenceId(occurrence) or NO_OCCURRENCE, etag)


async def update(
    world: World, made: Made, wanted: ReservationSpec, paths: Sequence[str], **given: int
) -> Made:
    return await world.use.changer.update(ANN, which(made, **given), Update(wanted, paths))


async def test_an_end_moves_up_to_the_neighbour(world: World) -> None:
    await world.cluster("n1")
    start = world.clock.now() + SOON
    made = await world.book(spec("exam", start))
    await world.book(spec("next", start + 2 * HOUR))
    done, etag = await world.use.changer.extend(ANN, which(made), start + 2 * HOUR)
    assert (done.end_at, etag) == (start + 2 * HOUR, 2)
    with pytest.raises(BookingRefused) as refused:
        await world.use.changer.extend(ANN, which(made), start + 2 * HOUR + 60)
    assert [each.name for each in refused.value.obstacles] == ["next"]
    assert (await world.shown(made)).occurrences[0].end_at == start + 2 * HOUR


async def test_an_end_is_not_moved_before_the_start(timed: World) -> None:
    await timed.cluster("n1")
    start = timed.clock.now() + SOON
    made = await timed.book(spec("exam", start))
    with pytest.raises(InvalidInput):
        await timed.use.changer.extend(ANN, which(made), start)


async def test_a_change_of_terms_keeps_the_places(timed: World) -> None:
    await timed.cluster("n1", "n2")
    made = await timed.book(spec("exam", timed.clock.now() + SOON))
    wanted = replace(made.reservation.spec, lend=False, on_end=OnEnd.CONTINUE, note="x")
    changed = await update(timed, made, wanted, ["lend", "on_end"])
    assert (changed.reservation.spec.lend, changed.reservation.spec.note) == (False, "")
    assert changed.reservation.etag == 2
    assert [o.parts for o in changed.occurrences] == [o.parts for o in made.occurrences]
    before = timed.service.replica.kept
    await timed.service.replica.follow()
    assert all(kept.reservation.spec.on_end is OnEnd.CONTINUE for kept in before.values())


async def test_an_etag_of_yesterday_is_refused(world: World) -> None:
    await world.cluster("n1")
    made = await world.book(spec("exam", world.clock.now() + SOON))
    await update(world, made, replace(made.reservation.spec, note="1"), ["note"], etag=1)
    with pytest.raises(Aborted) as stale:
        await update(world, made, replace(made.reservation.spec, note="2"), ["note"], etag=1)
    assert stale.value.code is ErrorCode.ETAG_MISMATCH
    assert (await world.shown(made)).reservation.spec.note == "1"


async def test_a_longer_booking_is_accepted_anew_whole_or_not_at_all(world: World) -> None:
    await world.cluster("n1")
    start = float(int(world.clock.now() + SOON))
    day = 24 * HOUR
    daily = When(length_s=HOUR, start_at=start, rrule="FREQ=DAILY;COUNT=3")
    made = await world.book(spec("course", 0, when=daily))
    await world.book(spec("other", start + day + 2 * HOUR))
    longer = replace(made.reservation.spec, when=replace(daily, length_s=2 * HOUR))
    changed = await update(world, made, longer, ["when.length_s"])
    assert [o.id for o in changed.occurrences] == [o.id for o in made.occurrences]
    assert {o.end_at - o.start_at for o in changed.occurrences} == {2 * HOUR}
    too_long = replace(longer, when=replace(daily, length_s=3 * HOUR))
    with pytest.raises(BookingRefused) as refused:
        await update(world, made, too_long, ["when.length_s"])
    assert refused.value.start_at == start + day
    stands = await world.shown(made)
    assert {o.end_at - o.start_at for o in stands.occurrences} == {2 * HOUR}


async def test_another_time_replaces_the_occurrences(timed: World) -> None:
    await timed.cluster("n1")
    start = timed.clock.now() + SOON
    made = await timed.book(spec("exam", start))
    later = replace(made.reservation.spec, when=When(length_s=HOUR, start_at=start + 60))
    changed = await update(timed, made, later, ["when"])
    (occurrence,) = changed.occurrences
    assert occurrence.start_at == start + 60
    await timed.book(spec("before", start - HOUR + 60))


async def test_only_checked_a_change_leaves_nothing(timed: World) -> None:
    await timed.cluster("n1")
    start = timed.clock.now() + SOON
    made = await timed.book(spec("exam", start))
    later = replace(made.reservation.spec, when=When(length_s=HOUR, start_at=start + 60))
    checked = await timed.use.changer.update(
        ANN, which(made), Update(later, ["when.start_at"], only_check=True)
    )
    assert checked.occurrences[0].start_at == start + 60
    stands = await timed.shown(made)
    assert (stands.occurrences, stands.reservation.etag) == (made.occurrences, 1)


async def test_unknown_paths_are_refused(timed: World) -> None:
    await timed.cluster("n1")
    made = await timed.book(spec("exam", timed.clock.now() + SOON))
    for path in ("when.hour", "tenant", "what.nodes.count", ""):
        with pytest.raises(InvalidInput) as wrong:
            await update(timed, made, made.reservation.spec, [path])
        assert wrong.value.violations[0].field == "update_mask"


async def test_cancelling_gives_all_of_it_back(world: World) -> None:
    await world.cluster("n1")
    start = world.clock.now() + SOON
    made = await world.book(spec("exam", start))
    gone = await world.use.ender.cancel(ANN, which(made), reason="no exam")
    assert gone.reservation.state is ReservationState.CANCELLED
    again = await world.use.ender.cancel(ANN, which(made), reason="")
    assert again.reservation.message == "no exam"
    await world.book(spec("exam", start))


async def test_one_occurrence_is_cancelled_alone(timed: World) -> None:
    await timed.cluster("n1")
    start = timed.clock.now() + SOON
    daily = When(length_s=HOUR, start_at=start, rrule="FREQ=DAILY;COUNT=3")
    made = await timed.book(spec("course", 0, when=daily))
    second = made.occurrences[1]
    left = await timed.use.ender.cancel(ANN, which(made, second.id), reason="holiday")
    assert left.reservation.state is ReservationState.ACTIVE
    assert second.id not in {o.id for o in left.occurrences}
    await timed.book(spec("exam", second.start_at))


async def test_nodes_are_given_back_one_by_one(timed: World) -> None:
    await timed.cluster("n1", "n2")
    made = await timed.book(spec("exam", timed.clock.now() + SOON, units=2))
    term = await timed.term()
    await timed.pass_time(SOON)
    assert "started" in await timed.look(term)
    left = await timed.use.ender.release(ANN, which(made), ["north/n1"])
    assert places([left]) == [{"n2"}]
    assert left.state is OccurrenceState.RUNNING
    with pytest.raises(InvalidInput):
        await timed.use.ender.release(ANN, which(made), ["north/n1"])
    over = await timed.use.ender.release(ANN, which(made), [])
    assert over.state is OccurrenceState.RELEASED
    gone = await timed.shown(made)
    assert gone.reservation.state is not ReservationState.ACTIVE


async def test_nodes_that_were_given_back_are_not_booked_again(world: World) -> None:
    await world.cluster("n1", "n2", "n3", "n4")
    made = await world.book(spec("exam", world.clock.now() + 0.2, units=3))
    term = await world.term()
    await world.pass_time(0.25)
    assert "started" in await world.look(term)
    first, second, third = sorted(places(made.occurrences)[0])
    await world.use.ender.release(ANN, which(made), [f"north/{first}"])
    await world.inventory(*(node(n, gpus=8, up=n != second) for n in ("n1", "n2", "n3", "n4")))
    assert await world.look(term) == ["moved"]
    (after,) = places((await world.shown(made)).occurrences)
    assert len(after) == 2
    assert third in after
    assert second not in after


async def test_what_runs_stays_what_it_was_when_the_booking_is_changed(world: World) -> None:
    await world.cluster("n1", "n2", "n3")
    made = await world.book(spec("exam", world.clock.now() + 0.2))
    term = await world.term()
    await world.pass_time(0.25)
    assert "started" in await world.look(term)
    larger = spec("exam", made.reservation.spec.when.start_at or 0.0, units=2)
    await update(world, made, larger, ["what"])
    (here,) = places(made.occurrences)
    await world.inventory(*(node(n, gpus=8, up=n not in here) for n in ("n1", "n2", "n3")))
    assert await world.look(term) == ["moved"]
    (after,) = places((await world.shown(made)).occurrences)
    assert len(after) == 1


async def test_what_does_not_run_cannot_be_given_back(timed: World) -> None:
    await timed.cluster("n1")
    made = await timed.book(spec("exam", timed.clock.now() + SOON))
    with pytest.raises(DomainError) as wrong:
        await timed.use.ender.release(ANN, which(made), [])
    assert wrong.value.code is ErrorCode.WRONG_STATE


async def test_a_stranger_sees_no_booking(timed: World) -> None:
    await timed.cluster("n1")
    made = await timed.book(spec("exam", timed.clock.now() + SOON))
    stranger = replace(ANN, tenant="other")  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        await timed.use.ender.cancel(stranger, which(made), reason="")
    with pytest.raises(NotFound):
        await timed.use.looker.get(stranger, made.reservation.id)


async def test_cancelling_during_a_start_leaves_one_of_both(world: World) -> None:
    await world.cluster("n1")
    made = await world.book(spec("exam", world.clock.now() + 0.2, length_s=60))
    term = await world.term()
    await world.pass_time(0.25)
    await asyncio.gather(
        world.use.ender.cancel(ANN, which(made), reason="too late"), world.look(term)
    )
    await world.look(term)
    events = [e.event.value for e in await world.events(made.reservation.id)]
    assert events.count("cancelled") == 2
    assert events.count("started") <= 1
    assert world.service.replica.kept == {}
