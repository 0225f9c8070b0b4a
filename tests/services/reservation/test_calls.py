"""The service as programs call it: the real client over the real wire."""

from collections.abc import AsyncIterator
from dataclasses import replace

import grpc
import pytest

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.client import AsyncClient, BookingFilter, BookingRefused, ClientConfig
from atoll.core.model.booking import Owners
from atoll.core.model.errors import DomainError, ErrorCode, InvalidInput, NotFound
from atoll.core.model.ids import ClusterName, QueueName
from atoll.core.model.reservation import Amount, Flexible, What, When
from atoll.core.model.resources import DeviceRequest
from atoll.core.model.standing_rule import LargeJobRule, RollingMaintenanceRule, Rule
from atoll.runtime.rpc.server import GrpcServer
from atoll.runtime.settings import ServiceSettings
from tests.adapters.store_builders import NORTH
from tests.services.reservation.worlds import HOUR, World, spec

SOON = 2 * HOUR
H100 = What(amounts=(Amount(DeviceRequest("H100", 8), 1),))


@pytest.fixture
async def client(timed: World) -> AsyncIterator[AsyncClient]:
    """Calls a server over `timed`, in which there are two nodes."""
    await timed.cluster("n1", "n2")
    server = GrpcServer(
        ServiceSettings(drain_s=0), timed.service.services(), clock=timed.clock, ids=timed.ids
    )
    await server.start()
    config = ClientConfig(reservation=(server.address,), principal="ann")
    async with AsyncClient(config=config) as found:
        yield found
    timed.service.wake.stop()
    await server.drain()


async def test_a_booking_comes_back_as_it_was_written(timed: World, client: AsyncClient) -> None:
    wanted = spec("exam", timed.clock.now() + SOON, priority=3, note="for the exam")
    checked = await client.reservations.check(wanted)
    assert (checked.id, len(checked.occurrences)) == (0, 1)
    made = await client.reservations.create(wanted)
    assert (made.spec, made.created_by, made.etag) == (wanted, "ann", 1)
    read = await client.reservations.get("exam")
    assert read == replace(made, displaced=())
    assert (await client.reservations.get(made.id)).next == made.occurrences[0]
    assert [each.id async for each in client.reservations.list()] == [made.id]
    with pytest.raises(NotFound) as missing:
        await client.reservations.get("exma")
    assert "exam" in missing.value.message


async def test_a_refusal_tells_what_is_in_the_way(timed: World, client: AsyncClient) -> None:
    start = timed.clock.now() + SOON
    await client.reservations.create(spec("one", start, units=2))
    with pytest.raises(BookingRefused) as refused:
        await client.reservations.create(spec("two", start))
    error = refused.value
    assert (error.code, error.start_at) == (ErrorCode.BOOKING_REFUSED, start)
    assert [(each.name, each.amount) for each in error.obstacles] == [("one", 16)]
    assert len(error.alternatives) == 3
    assert error.alternatives[0].parts[0].cluster == NORTH
    found = await client.reservations.find(H100, HOUR)
    assert error.alternatives[0].end_at <= start or error.alternatives[0].start_at >= start + HOUR
    assert found.windows[0].start_at == timed.clock.now()


async def test_fields_are_named(timed: World, client: AsyncClient) -> None:
    with pytest.raises(InvalidInput) as wrong:
        await client.reservations.create(
            spec("no name", 0, owners=Owners(queues=(QueueName("x"),)))
        )
    fields = {each.field for each in wrong.value.violations}
    assert {"spec.name", "spec.when.start_at"} <= fields


async def test_lists_come_in_pages(timed: World, client: AsyncClient) -> None:
    start = timed.clock.now() + SOON
    for n in range(5):
        await client.reservations.create(spec(f"b{n}", start + n * HOUR + 0.1))
    names = [each.name async for each in client.reservations.list(page_size=2)]
    assert names == ["b0", "b1", "b2", "b3", "b4"]
    occurrences = [each async for each in client.reservations.occurrences(page_size=2)]
    assert [each.name for each in occurrences] == names
    some = BookingFilter(from_at=start + HOUR, until_at=start + 3 * HOUR)
    assert [e.name async for e in client.reservations.list(some)] == ["b0", "b1", "b2"]
    channel = grpc.aio.insecure_channel(client.config.reservation[0])
    call = channel.unary_unary(
        "/atoll.api.reservation.v1.ReservationService/ListReservations",
        pb.ListReservationsRequest.SerializeToString,
        pb.ListReservationsResponse.FromString,
    )
    with pytest.raises(grpc.aio.AioRpcError) as bad:
        await call(pb.ListReservationsRequest(page_token="nonsense"))
    assert bad.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    await channel.close()


async def test_the_calendar_shows_what_is_free(timed: World, client: AsyncClient) -> None:
    start = timed.clock.now() + SOON
    await client.reservations.create(spec("exam", start))
    view = await client.reservations.calendar(start, start + 2 * HOUR, step_s=HOUR)
    (row,) = [each for each in view.rows if each.kind == "H100"]
    assert (row.cluster, row.total) == ("north", 16)
    assert (row.booked, row.free) == ((8.0, 0.0), (8.0, 16.0))
    assert [each.name for each in view.occurrences] == ["exam"]
    with pytest.raises(InvalidInput):
        await client.reservations.calendar(start, start)


async def test_changes_and_ends(timed: World, client: AsyncClient) -> None:
    start = timed.clock.now() + SOON
    made = await client.reservations.create(spec("exam", start))
    longer = await client.reservations.extend(made.id, start + 2 * HOUR, etag=1)
    assert longer.end_at == start + 2 * HOUR
    wanted = replace(made.spec, note="moved")
    changed = await client.reservations.update(made.id, wanted, ["note"], etag=2)
    assert (changed.spec.note, changed.etag) == ("moved", 3)
    gone = await client.reservations.cancel(made.id, reason="no exam")
    assert (gone.state.value, gone.message) == ("CANCELLED", "no exam")
    with pytest.raises(DomainError):
        await client.reservations.release(made.id)


async def test_watches_see_what_happens(timed: World, client: AsyncClient) -> None:
    made = await client.reservations.create(spec("exam", timed.clock.now() + SOON))
    cursor = (await timed.store.reservation.events_now()).text
    await client.reservations.cancel(made.id)
    events = []
    async for event in client.reservations.watch(cursor):
        events.append(event)
        if len(events) == 2:
            break
    assert [each.event for each in events] == ["cancelled", "cancelled"]
    assert [bool(each.occurrence_id) for each in events] == [True, False]
    assert {each.principal for each in events} == {"ann"}


ICAL = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//tests//EN
BEGIN:VEVENT
UID:one@ops
SUMMARY:Firmware rack r0
DTSTART;TZID=Europe/Berlin:20270201T090000
DTEND;TZID=Europe/Berlin:20270201T110000
LOCATION:north/r0
DESCRIPTION:new firmware
END:VEVENT
BEGIN:VEVENT
UID:two@ops
SUMMARY:Somewhere
DTSTART:20270202T090000Z
DURATION:PT1H
LOCATION:north/r7
END:VEVENT
BEGIN:VEVENT
UID:three@ops
SUMMARY:Weekly
DTSTART:20270203T090000Z
DURATION:PT1H
RRULE:FREQ=WEEKLY;COUNT=2
EXDATE:20270210T090000Z
X-ATOLL-NODES:north/n2
END:VEVENT
END:VCALENDAR
"""


async def test_a_calendar_comes_in_and_goes_out(timed: World, client: AsyncClient) -> None:
    checked = await client.reservations.import_ical(ICAL, validate_only=True)
    assert [each.outcome for each in checked] == ["created", "refused", "created"]
    assert [each async for each in client.reservations.list()] == []
    first = await client.reservations.import_ical(ICAL)
    assert [each.outcome for each in first] == ["created", "refused", "created"]
    assert "north/r0" in first[1].message  # the nearest
    made = await client.reservations.get(first[0].reservation_id)
    assert (made.spec.owners.nobody, made.spec.note) == (True, "new firmware")
    assert made.occurrences[0].start_local == "2027-02-01T09:00:00+01:00"
    assert (await client.reservations.get(first[2].reservation_id)).planned == 1
    again = await client.reservations.import_ical(ICAL)
    assert [each.outcome for each in again] == ["unchanged", "refused", "unchanged"]
    later = ICAL.replace("20270201T110000", "20270201T120000")
    moved = await client.reservations.import_ical(later)
    assert [each.outcome for each in moved] == ["updated", "refused", "unchanged"]
    assert moved[0].reservation_id == first[0].reservation_id
    text = await client.reservations.export_ical(cluster="north")
    assert text.count("BEGIN:VEVENT") == 2
    assert "SUMMARY:Firmware-rack-r0" in text
    assert "DTEND:20270201T110000Z" in text
    for nonsense in ("", "hello", "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"):
        with pytest.raises(InvalidInput):
            await client.reservations.import_ical(nonsense)


async def test_rules_are_put_listed_and_deleted(timed: World, client: AsyncClient) -> None:
    large = Rule("large", LargeJobRule(64, queues=(QueueName("default"),)))
    made = await client.reservations.put_rule(large)
    assert (made.etag, made.kind) == (1, large.kind)
    with pytest.raises(DomainError) as stale:
        await client.reservations.put_rule(large, etag=7)
    assert stale.value.code is ErrorCode.ETAG_MISMATCH
    rolling = Rule("racks", RollingMaintenanceRule(ClusterName("nroth"), "rack", 1, 600))
    with pytest.raises(InvalidInput) as wrong:
        await client.reservations.put_rule(rolling)
    assert "north" in wrong.value.message
    assert [each.name for each in await client.reservations.rules()] == ["large"]
    assert [each async for each in client.reservations.rule_actions()] == []
    assert await client.reservations.delete_rule("large") == 0
    with pytest.raises(NotFound):
        await client.reservations.delete_rule("large")


async def test_flexible_bookings_take_the_first_window(timed: World, client: AsyncClient) -> None:
    now = timed.clock.now()
    await client.reservations.create(spec("busy", now + 60, units=2))
    span = Flexible(now, now + 24 * HOUR)
    wanted = spec("any", 0, when=When(length_s=HOUR, flexible=span))
    made = await client.reservations.create(wanted)
    assert made.occurrences[0].start_at == now + 60 + HOUR
