from dataclasses import replace

import pytest

from atoll.core.model.errors import DomainError, StaleEpoch
from atoll.core.model.ids import NO_EPOCH, Epoch, QueueName
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.reservation import (
    OccurrenceState,
    ReservationId,
    ReservationState,
    What,
    WholeNodes,
)
from atoll.core.model.reservation_lifecycle import BookingEvent
from atoll.core.model.standing_rule import LargeJobRule, Rule, RuleAction
from atoll.ports.store.bookings import (
    BookingRequest,
    BookingRetention,
    LoopFence,
    OccurrenceFilter,
    ReservationFilter,
    Use,
)
from tests.adapters.booking_builders import (
    AT,
    HOUR,
    OTHER,
    book,
    booking,
    move,
    record,
    write,
)
from tests.adapters.store_builders import (
    TENANT,
    cluster_with,
    lead,
    node,
    node_ids,
    place,
    placement,
    report,
    submit,
)
from tests.adapters.store_worlds import StoreWorld

START = (0.0, 0)


async def test_a_booking_is_read_as_it_was_written(world: StoreWorld) -> None:
    made, (occurrence,) = await book(world.store, remarks=("a gap",))
    listed = await world.store.reservation.get(TENANT, made.id)
    assert listed is not None
    assert listed.reservation == made
    assert listed.following == occurrence
    assert (listed.planned, listed.key) == (1, AT)
    assert await world.store.reservation.get(OTHER, made.id) is None
    assert await world.store.reservation.find(TENANT, "exam") == made.id


async def test_a_live_name_is_taken_once_in_a_tenant(world: StoreWorld) -> None:
    made, _ = await book(world.store)
    async with world.store.reservation.begin() as tx:
        assert await tx.add_reservation(booking()) is None
        assert await tx.add_reservation(booking(tenant=OTHER)) is not None
    async with world.store.reservation.begin() as tx:
        locked = (await tx.lock_reservations([made.id]))[made.id]
        assert await tx.update_reservation(replace(locked, state=ReservationState.CANCELLED))
        assert await tx.add_reservation(booking()) is not None
        assert not await tx.update_reservation(locked)


async def test_a_request_stands_once(world: StoreWorld) -> None:
    first = BookingRequest(TENANT, "key", b"body")
    async with world.store.reservation.begin() as tx:
        assert await tx.add_request(first) is None
        await tx.set_request(replace(first, reservation=ReservationId(7)))
    async with world.store.reservation.begin() as tx:
        standing = await tx.add_request(replace(first, body_hash=b"other"))
    assert standing == replace(first, reservation=ReservationId(7))
    assert await world.store.reservation.standing(TENANT, "key") == standing
    assert await world.store.reservation.standing(OTHER, "key") is None


async def test_a_transaction_that_fails_leaves_nothing(world: StoreWorld) -> None:
    async def fail() -> None:
        async with world.store.reservation.begin() as tx:
            await write(tx, booking(), (AT,))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert await world.store.reservation.live() == []
    assert await world.store.reservation.find(TENANT, "exam") is None


async def test_lists_go_by_the_next_start_and_page(world: StoreWorld) -> None:
    first, _ = await book(world.store, "late", starts=(AT + 7200,))
    second, _ = await book(world.store, "early", starts=(AT, AT + 9000))
    store, wanted = world.store.reservation, ReservationFilter(TENANT)
    listed = await store.list_reservations(wanted, after=START, limit=10)
    assert [each.reservation.id for each in listed] == [second.id, first.id]
    after = (listed[0].key, int(second.id))
    (rest,) = await store.list_reservations(wanted, after=after, limit=10)
    assert rest.reservation == first


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"queue": "nlp"}, True),
        ({"queue": "nlp.exams.one"}, True),
        ({"queue": "nlp.exam"}, False),
        ({"created_by": "ann"}, True),
        ({"created_by": "bob"}, False),
        ({"cluster": "north"}, True),
        ({"cluster": "south"}, False),
        ({"ends_after": AT + HOUR}, False),
        ({"ends_after": AT, "starts_before": AT + 1}, True),
        ({"starts_before": AT}, False),
    ],
)
async def test_lists_show_what_is_asked_for(
    world: StoreWorld, given: dict[str, object], found: bool
) -> None:
    await book(world.store)
    store = world.store.reservation
    wanted = ReservationFilter(TENANT, **given)  # type: ignore[arg-type]
    assert bool(await store.list_reservations(wanted, after=START, limit=9)) is found
    if "created_by" not in given:
        only = OccurrenceFilter(TENANT, **given)  # type: ignore[arg-type]
        assert bool(await store.list_occurrences(only, after=START, limit=9)) is found


async def test_what_is_over_is_listed_when_asked_for(world: StoreWorld) -> None:
    made, (one,) = await book(world.store)
    await move(world.store, one, OccurrenceState.ENDED, ended_at=AT + HOUR)
    store = world.store.reservation
    live = OccurrenceFilter(TENANT)
    assert await store.list_occurrences(live, after=START, limit=9) == []
    (over,) = await store.list_occurrences(replace(live, over=True), after=START, limit=9)
    assert (over.id, over.state, over.ended_at) == (one.id, OccurrenceState.ENDED, AT + HOUR)
    (empty,) = await store.live_without_occurrence(limit=9)
    assert empty.id == made.id


async def test_the_loop_reads_all_that_lives(world: StoreWorld) -> None:
    made, (one, other) = await book(world.store, starts=(AT, AT + 7200))
    await move(world.store, other, OccurrenceState.CANCELLED)
    async with world.store.reservation.begin() as tx:
        await tx.note_use([Use(one.id, 1.5, busy_at=AT + 5, used_until=AT + 9)])
    (kept,) = await world.store.reservation.live()
    assert (kept.reservation, kept.occurrence.id) == (made, one.id)
    assert (kept.busy_at, kept.used_until, kept.occurrence.used_device_hours) == (
        AT + 5, AT + 9, 1.5,
    )  # fmt: skip
    found = await world.store.reservation.kept([one.id, other.id])
    assert [each.occurrence.state for each in found.values()] == [
        OccurrenceState.PLANNED,
        OccurrenceState.CANCELLED,
    ]


async def test_what_is_left_of_an_occurrence_is_kept(world: StoreWorld) -> None:
    made, (one, other) = await book(world.store, starts=(AT, AT + 7200))
    left = What(nodes=WholeNodes(2))
    await move(world.store, one, OccurrenceState.RUNNING, what=left)
    found = await world.store.reservation.kept([one.id, other.id])
    assert [each.occurrence.what for each in found.values()] == [left, None]
    await move(world.store, one, OccurrenceState.RUNNING, what=None)
    async with world.store.reservation.begin() as tx:
        assert [each.what for each in await tx.live_occurrences(made.id)] == [None, None]


async def test_recurring_ones_are_planned_on(world: StoreWorld) -> None:
    weekly = booking().spec
    weekly = replace(weekly, when=replace(weekly.when, rrule="FREQ=WEEKLY"))
    made, _ = await book(world.store, spec=weekly, planned_until=AT)
    await book(world.store, "once")
    assert await world.store.reservation.to_plan(AT, limit=9) == []
    (found,) = await world.store.reservation.to_plan(AT + 1, limit=9)
    assert found.id == made.id


async def test_the_loop_s_fence_lets_one_leader_write(world: StoreWorld) -> None:
    store = world.store.reservation
    first = await store.take_over(Epoch(1, 5))
    assert first == LoopFence(Epoch(1, 5), 0)
    async with store.begin() as tx:
        after = await tx.require(first)
    second = await store.take_over(Epoch(1, 8))
    assert second.seq == after.seq
    with pytest.raises(StaleEpoch):
        async with store.begin() as tx:
            await tx.require(after)
    with pytest.raises(StaleEpoch):
        await store.take_over(Epoch(1, 7))
    assert await store.read_fence() == second
    assert second.epoch > NO_EPOCH


async def test_rules_are_kept_and_say_what_they_did(world: StoreWorld) -> None:
    rule = Rule("large", LargeJobRule(8, queues=(QueueName("nlp"),)), tenant=TENANT)
    did = RuleAction("large", 3.0, what="booked", why="64 > 8", reservation=ReservationId(4))
    store = world.store.reservation
    async with store.begin() as tx:
        assert await tx.lock_rule(TENANT, "large") is None
        await tx.put_rule(rule)
        await tx.put_rule(replace(rule, status="well", etag=2))
        await tx.add_rule_actions(TENANT, [did, replace(did, at=4.0)])
    assert await store.rules() == [replace(rule, status="well", etag=2)]
    assert await store.rules(OTHER) == []
    (_, newest), (oldest, first) = await store.rule_actions(TENANT, "", before=0, limit=9)
    assert (newest.at, first) == (4.0, did)
    assert await store.rule_actions(TENANT, "large", before=oldest, limit=9) == []
    async with store.begin() as tx:
        assert await tx.lock_rule(TENANT, "large") is not None
        await tx.drop_rule(TENANT, "large")
    assert await store.rules(TENANT) == []


async def test_watches_see_each_event_once(world: StoreWorld) -> None:
    store = world.store.reservation
    cursor = await store.events_now()
    made, _ = await book(world.store)
    other, _ = await book(world.store, "other", tenant=OTHER)
    async with store.begin() as tx:
        await tx.add_events([record(made, BookingEvent.UPDATED), record(other, BookingEvent.MOVED)])
    page = await store.events_after(cursor, tenant=TENANT, limit=1)
    rest = await store.events_after(page.cursor, tenant=TENANT)
    events = [*page.events, *rest.events]
    assert [each.event for each in events] == [BookingEvent.CREATED, BookingEvent.UPDATED]
    assert (await store.events_after(rest.cursor, tenant=TENANT)).events == ()
    for queue, shown in (("nlp", 2), ("nlp.exams", 2), ("cv", 0)):
        found = await store.events_after(cursor, tenant=TENANT, queue=queue)
        assert len(found.events) == shown
    only = await store.events_after(cursor, tenant=OTHER, reservation=other.id)
    assert [each.event for each in only.events] == [BookingEvent.CREATED, BookingEvent.MOVED]


async def test_what_is_long_over_goes(world: StoreWorld) -> None:
    made, (one,) = await book(world.store)
    store = world.store.reservation
    cursor = await store.events_now()
    keep = BookingRetention(reservations_s=0, requests_s=0, events_s=0, actions_s=0)
    await world.pass_time(0.01)
    await store.prune(replace(keep, events_s=1e12))
    assert await store.get(TENANT, made.id) is not None
    await move(world.store, one, OccurrenceState.ENDED, ended_at=1.0)
    async with store.begin() as tx:
        locked = (await tx.lock_reservations([made.id]))[made.id]
        await tx.update_reservation(replace(locked, state=ReservationState.ENDED))
        await tx.add_events([record(made, BookingEvent.ENDED)])
    await world.pass_time(0.01)
    assert await store.prune(keep) == 4
    assert await store.get(TENANT, made.id) is None
    with pytest.raises(DomainError):
        await store.events_after(cursor, tenant=TENANT)


async def test_what_somebody_booked_is_found_over_or_not(world: StoreWorld) -> None:
    _, (one,) = await book(world.store, created_by="rule:racks")
    await book(world.store, "other")
    await move(world.store, one, OccurrenceState.ENDED, ended_at=AT)
    found = await world.store.reservation.made_by(TENANT, "rule:racks")
    assert [kept.occurrence.id for kept in found] == [one.id]
    assert await world.store.reservation.made_by(OTHER, "rule:racks") == []


async def test_runs_of_a_queue_are_told_with_their_devices(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=2))
    number = (await node_ids(world.store))["n1"]
    fence = await lead(world.store)
    (job,) = await submit(world.store)
    made = placement(job, number, gpus=(0, 1))
    await place(world.store, fence, made)
    store = world.store.reservation
    assert await store.past_runs(job.queue, 0.0) == []
    await report(world.store, made.attempt, AttemptEvent.ACCEPTED)
    await report(world.store, made.attempt, AttemptEvent.STARTED)
    (run,) = await store.past_runs(job.queue, 9e9)
    assert (run.tasks, run.ended_at) == (made.tasks, 0.0)
    await report(world.store, made.attempt, AttemptEvent.FINISHED, exit_code=0)
    (run,) = await store.past_runs(job.queue, 0.0)
    assert run.ended_at >= run.started_at > 0
    assert await store.past_runs(job.queue, run.ended_at) == []
    assert await store.past_runs(QueueName("defaul"), 0.0) == []
