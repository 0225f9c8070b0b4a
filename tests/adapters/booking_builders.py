"""Bookings for tests of the store, and the ways in which the service writes them."""

from collections.abc import Sequence
from dataclasses import replace

from atoll.core.model.booking import NodeShare, OccurrenceId, Owners
from atoll.core.model.ids import DEFAULT_SHARD, NodeId, QueueName, Tenant
from atoll.core.model.messages import ChangeKind
from atoll.core.model.reservation import (
    Amount,
    Occurrence,
    OccurrenceState,
    Part,
    Reservation,
    ReservationId,
    ReservationSpec,
    What,
    When,
)
from atoll.core.model.reservation_lifecycle import BookingEvent
from atoll.core.model.resources import DeviceGrant, DeviceRequest
from atoll.ports.store.bookings import BookingRecord
from atoll.ports.store.common import Change
from atoll.ports.store.reservation import ReservationTx
from tests.adapters.store_builders import NORTH, TENANT
from tests.adapters.store_worlds import Store

HOUR = 3600.0
AT = 2_000_000_000.0


def booking(name: str = "exam", **given: object) -> Reservation:
    """A reservation without a number."""
    spec = given.pop("spec", None) or ReservationSpec(
        name,
        What(amounts=(Amount(DeviceRequest("H100", 1), 2),)),
        When(length_s=HOUR, start_at=AT),
        owners=Owners(queues=(QueueName("nlp.exams"),)),
        note="for the exam",
    )
    assert isinstance(spec, ReservationSpec)
    fields: dict[str, object] = {"tenant": TENANT, "created_by": "ann", "created_at": 1.0, **given}
    return Reservation(ReservationId(0), spec, **fields)  # type: ignore[arg-type]


def share(node: int = 1, **given: object) -> NodeShare:
    fields: dict[str, object] = {"devices": (DeviceGrant(0, blocks=100),), **given}
    return NodeShare(NodeId(node), f"n{node}", **fields)  # type: ignore[arg-type]


def occurrence(of: Reservation, start: float = AT, **given: object) -> Occurrence:
    fields: dict[str, object] = {"parts": (Part(NORTH, (share(),)),), **given}
    return Occurrence(
        OccurrenceId(0),
        of.id,
        of.spec.name,
        start,
        start + HOUR,
        **fields,  # type: ignore[arg-type]
    )


def record(of: Reservation, event: BookingEvent, **given: object) -> BookingRecord:
    fields: dict[str, object] = {"at": 5.0, "queues": of.spec.owners.queues, **given}
    return BookingRecord(of.id, of.tenant, of.spec.name, event, **fields)  # type: ignore[arg-type]


async def write(
    tx: ReservationTx, wanted: Reservation, starts: Sequence[float]
) -> tuple[Reservation, list[Occurrence]]:
    """A booking as the service writes it, in an open transaction."""
    await tx.lock_shards([DEFAULT_SHARD])
    made = await tx.add_reservation(wanted)
    assert made is not None
    written = await tx.add_occurrences([occurrence(made, start) for start in starts])
    await tx.add_events([record(made, BookingEvent.CREATED)])
    await tx.changed([Change(ChangeKind.BOOKINGS, ids=tuple(each.id for each in written))])
    await tx.raise_booking_rev([DEFAULT_SHARD])
    return made, written


async def book(
    store: Store, name: str = "exam", *, starts: Sequence[float] = (AT,), **given: object
) -> tuple[Reservation, list[Occurrence]]:
    """A booking in a transaction of its own."""
    async with store.reservation.begin() as tx:
        return await write(tx, booking(name, **given), starts)


async def move(store: Store, each: Occurrence, state: OccurrenceState, **given: object) -> None:
    """An occurrence as it is from now on."""
    async with store.reservation.begin() as tx:
        await tx.lock_reservations([each.reservation])
        await tx.update_occurrences([replace(each, state=state, **given)])  # type: ignore[arg-type]
        await tx.changed([Change(ChangeKind.BOOKINGS, ids=(each.id,))])


OTHER = Tenant("other")
