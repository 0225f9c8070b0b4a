import asyncio
from dataclasses import replace
from typing import Any

import pytest

from atoll.core.model.booking import Owners
from atoll.core.model.errors import AlreadyExists, DomainError, ErrorCode, InvalidInput
from atoll.core.model.ids import DEFAULT_SHARD, ClusterName, QueueName
from atoll.core.model.refusal import BookingRefused
from atoll.core.model.reservation import What, When, WholeDomains, WholeNodes
from atoll.reservation.usecases.create import Draft
from tests.services.reservation.worlds import ANN, HOUR, World, places, spec

SOON = 2 * HOUR


async def test_a_booking_has_its_nodes_from_the_start(world: World) -> None:
    await world.cluster("n1", "n2")
    start = world.clock.now() + SOON
    made = await world.book(spec("exam", start))
    (occurrence,) = made.occurrences
    assert places([occurrence])[0] <= {"n1", "n2"}
    assert (occurrence.start_at, occurrence.end_at) == (start, start + HOUR)
    delta = await world.store.placement.load(DEFAULT_SHARD)
    assert [window.booking for window in delta.windows] == ["exam"]
    assert (await world.store.placement.read_fence(DEFAULT_SHARD)).booking_rev == 1
    (event,) = await world.events(made.reservation.id)
    assert (event.event.value, event.principal) == ("created", "ann")


async def test_two_bookings_do_not_overlap_on_a_node(world: World) -> None:
    await world.cluster("n1", "n2")
    start = world.clock.now() + SOON
    one = await world.book(spec("one", start))
    two = await world.book(spec("two", start))
    assert places(one.occurrences) != places(two.occurrences)
    with pytest.raises(BookingRefused) as refused:
        await world.book(spec("three", start))
    assert {o.name for o in refused.value.obstacles} == {"one", "two"}
    assert refused.value.start_at == start
    assert len(refused.value.alternatives) == 3
    assert all(each.start_at != start for each in refused.value.alternatives)
    # And an alternative can be had.
    first = refused.value.alternatives[0]
    await world.book(spec("three", first.start_at))


async def test_a_hundred_at_once_for_the_last_window_make_one_booking(world: World) -> None:
    await world.cluster("n1")
    start = world.clock.now() + SOON
    other = world.another()
    uses = (world.use, other.use_cases)
    results = await asyncio.gather(
        *(uses[n % 2].booker.create(ANN, Draft(spec(f"b{n}", start))) for n in range(100)),
        return_exceptions=True,
    )
    refused = [each for each in results if isinstance(each, BookingRefused)]
    assert len(refused) == 99
    assert all(each.alternatives for each in refused)
    assert len(await world.store.reservation.live()) == 1
    await other.close()


async def test_a_request_is_booked_once(world: World) -> None:
    await world.cluster("n1")
    start = world.clock.now() + SOON
    made = await asyncio.gather(*(world.book(spec("exam", start), key="k") for _ in range(5)))
    assert len({each.reservation.id for each in made}) == 1
    with pytest.raises(AlreadyExists) as reused:
        await world.use.booker.create(ANN, Draft(spec("x", start), key="k", body_hash=b"2"))
    assert reused.value.code is ErrorCode.REQUEST_REUSED


async def test_a_name_is_booked_once(world: World) -> None:
    await world.cluster("n1")
    start = world.clock.now() + SOON
    await world.book(spec("exam", start))
    with pytest.raises(AlreadyExists) as taken:
        await world.book(spec("exam", start + SOON))
    assert taken.value.code is ErrorCode.RESERVATION_EXISTS


async def test_what_is_only_checked_leaves_nothing(world: World) -> None:
    await world.cluster("n1")
    draft = Draft(spec("exam", world.clock.now() + SOON))
    made = await world.use.booker.check(ANN, draft)
    assert places(made.occurrences) == [{"n1"}]
    assert not made.reservation.id
    assert await world.store.reservation.live() == []


@pytest.mark.parametrize(
    ("given", "field", "told"),
    [
        ({"owners": Owners(queues=(QueueName("defualt"),))}, "spec.owners.queues[0]", "default"),
        (
            {"what": What(percent=50, clusters=(ClusterName("norht"),))},
            "spec.what.clusters[0]",
            "north",
        ),
        ({"what": What(nodes=WholeNodes(names=("north/m1",)))}, "spec.what.nodes.names[0]", "n1"),
        (
            {"what": What(domains=WholeDomains("rack", names=("north/r9",)))},
            "spec.what.domains.names[0]",
            "north/r0",
        ),
        ({"what": What(domains=WholeDomains("row", 1))}, "spec.what.domains.level", "row"),
        ({"when": When(length_s=0, start_at=2e9)}, "spec.when.length_s", ""),
        ({"when": When(length_s=HOUR, start_at=1e9)}, "spec.when.start_at", "past"),
        (
            {"when": When(length_s=HOUR, start_local="2030-01-01T00:00", zone="Mars/Base")},
            "spec.when.zone",
            "Mars",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_bad_input_is_refused_with_its_field(
    timed: World, given: dict[str, Any], field: str, told: str
) -> None:
    await timed.cluster("n1")
    with pytest.raises(InvalidInput) as wrong:
        await timed.book(spec("exam", timed.clock.now() + SOON, **given))
    violation = wrong.value.violations[0]
    assert violation.field == field
    assert told in violation.message
    assert await timed.store.reservation.live() == []


async def test_more_than_there_is_is_refused(timed: World) -> None:
    await timed.cluster("n1")
    with pytest.raises(BookingRefused) as refused:
        await timed.book(spec("exam", timed.clock.now() + SOON, units=2))
    assert refused.value.alternatives == ()


async def test_a_higher_booking_moves_a_lower_one_with_notice(timed: World) -> None:
    await timed.cluster("n1", "n2")
    start = timed.clock.now() + SOON
    low = await timed.book(spec("low", start))
    (place,) = places(low.occurrences)
    wanted = What(nodes=WholeNodes(names=tuple(f"north/{name}" for name in place)))
    high = await timed.book(spec("high", start, what=wanted, priority=5, override=True))
    assert places(high.occurrences) == [place]
    moved = (await timed.shown(low)).occurrences
    assert places(moved) == [{"n1", "n2"} - place]
    assert [e.event.value for e in await timed.events(low.reservation.id)] == [
        "created",
        "moved",
    ]


async def test_a_higher_booking_cancels_what_has_nowhere_to_go(timed: World) -> None:
    await timed.cluster("n1")
    start = timed.clock.now() + SOON
    low = await timed.book(spec("low", start))
    await timed.book(spec("high", start, priority=5, override=True))
    gone = await timed.shown(low)
    assert gone.reservation.state.value == "CANCELLED"
    assert "high" in gone.reservation.message
    events = [e.event.value for e in await timed.events(low.reservation.id)]
    assert events == ["created", "cancelled", "cancelled"]


async def test_a_recurrence_is_planned_to_the_horizon(timed: World) -> None:
    await timed.cluster("n1")
    when = When(length_s=HOUR, start_local="2027-01-18T09:00", zone="Europe/Berlin",
                rrule="FREQ=WEEKLY;BYDAY=MO")  # fmt: skip
    made = await timed.book(spec("course", 0, when=when))
    assert made.planned == 13  # of 90 days
    assert made.occurrences[0].start_local == "2027-01-18T09:00:00+01:00"
    locals_ = {each.start_local[11:] for each in made.occurrences}
    assert locals_ == {"09:00:00+01:00", "09:00:00+02:00"}  # daylight saving begins in March


async def test_a_refused_recurrence_books_nothing(timed: World) -> None:
    await timed.cluster("n1")
    week = 7 * 24 * HOUR
    start = timed.clock.now() + SOON
    await timed.book(spec("one", start + week))
    weekly = When(length_s=HOUR, start_at=start, rrule="FREQ=WEEKLY;COUNT=4")
    with pytest.raises(BookingRefused) as refused:
        await timed.book(spec("course", 0, when=weekly))
    assert refused.value.start_at == start + week
    assert len(await timed.store.reservation.live()) == 1


async def test_a_booking_is_seen_by_other_replicas(world: World) -> None:
    await world.cluster("n1")
    start = world.clock.now() + SOON
    other = world.another()
    await other.replica.follow()
    await world.book(spec("exam", start))
    with pytest.raises(DomainError):
        await other.use_cases.booker.create(ANN, Draft(spec("late", start)))
    await other.use_cases.booker.create(ANN, Draft(replace(spec("late", start + HOUR))))
    await other.close()
