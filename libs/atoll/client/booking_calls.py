"""The verbs about bookings as values: what is sent, and how the answer is read."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.client.booking_views import (
    BookingFilter,
    BookingInfo,
)
from atoll.client.calls import RESERVATION, Call, Page
from atoll.client.reading import read
from atoll.core.model.reservation import Displaced, Occurrence, ReservationSpec
from atoll.wire.reservation import (
    displaced_from_proto,
    occurrence_from_proto,
    state_from_proto,
)
from atoll.wire.reservation_spec import (
    spec_from_proto,
    spec_to_proto,
)

WATCH: Final = f"/{RESERVATION}/WatchReservations"

ReplyT = TypeVar("ReplyT", bound=Message)


def create(
    spec: ReservationSpec, *, request_id: str, validate_only: bool
) -> Call[pb.CreateReservationResponse, BookingInfo]:
    """Book, or only check; repeated with the same request_id it finds the same reservation."""
    return Call(
        RESERVATION,
        "CreateReservation",
        pb.CreateReservationRequest(
            spec=spec_to_proto(spec), request_id=request_id, validate_only=validate_only
        ),
        pb.CreateReservationResponse,
        lambda reply: booking_info(
            reply.reservation,
            reply.occurrences,
            displaced=map(displaced_from_proto, reply.displaced),
        ),
    )


def get(id_or_name: int | str) -> Call[pb.GetReservationResponse, BookingInfo]:
    """One reservation."""
    request = pb.GetReservationRequest()
    if isinstance(id_or_name, int):
        request.id = id_or_name
    else:
        request.name = id_or_name
    return Call(
        RESERVATION,
        "GetReservation",
        request,
        pb.GetReservationResponse,
        lambda reply: booking_info(reply.reservation, reply.occurrences),
    )


def list_reservations(
    wanted: BookingFilter, *, page_size: int, token: str
) -> Call[pb.ListReservationsResponse, Page[BookingInfo]]:
    """A page of reservations, by next start."""
    return Call(
        RESERVATION,
        "ListReservations",
        pb.ListReservationsRequest(
            from_at=wanted.from_at,
            until_at=wanted.until_at,
            queue=wanted.queue,
            created_by=wanted.created_by,
            cluster=wanted.cluster,
            all=wanted.all,
            page_size=page_size,
            page_token=token,
        ),
        pb.ListReservationsResponse,
        lambda reply: Page(
            [booking_info(each) for each in reply.reservations], reply.next_page_token
        ),
    )


def update(
    number: int, spec: ReservationSpec, fields: Iterable[str], *, etag: int, validate_only: bool
) -> Call[pb.UpdateReservationResponse, BookingInfo]:
    """Change what the paths of `fields` name, such as `when.length_s`."""
    return Call(
        RESERVATION,
        "UpdateReservation",
        pb.UpdateReservationRequest(
            id=number,
            spec=spec_to_proto(spec),
            update_mask=FieldMask(paths=fields),
            etag=etag,
            validate_only=validate_only,
        ),
        pb.UpdateReservationResponse,
        lambda reply: booking_info(reply.reservation, reply.occurrences),
        repeatable=validate_only,
    )


def cancel(
    number: int, *, occurrence_id: int, etag: int, reason: str
) -> Call[pb.CancelReservationResponse, BookingInfo]:
    """End one; repeatable, for cancelling twice is cancelling once."""
    return Call(
        RESERVATION,
        "CancelReservation",
        pb.CancelReservationRequest(
            id=number, occurrence_id=occurrence_id, etag=etag, reason=reason
        ),
        pb.CancelReservationResponse,
        lambda reply: booking_info(reply.reservation),
        repeatable=not etag,
    )


def extend(
    number: int, end_at: float, *, occurrence_id: int, etag: int
) -> Call[pb.ExtendReservationResponse, Occurrence]:
    """Move an end."""
    return Call(
        RESERVATION,
        "ExtendReservation",
        pb.ExtendReservationRequest(
            id=number, occurrence_id=occurrence_id, end_at=end_at, etag=etag
        ),
        pb.ExtendReservationResponse,
        lambda reply: occurrence_from_proto(reply.occurrence),
        repeatable=not etag,
    )


def release(
    number: int, *, occurrence_id: int, nodes: Iterable[str]
) -> Call[pb.ReleaseReservationResponse, Occurrence]:
    """Give back what runs, or some nodes of it."""
    return Call(
        RESERVATION,
        "ReleaseReservation",
        pb.ReleaseReservationRequest(id=number, occurrence_id=occurrence_id, nodes=nodes),
        pb.ReleaseReservationResponse,
        lambda reply: occurrence_from_proto(reply.occurrence),
        repeatable=False,
    )


def list_occurrences(
    wanted: BookingFilter, *, reservation_id: int, page_size: int, token: str
) -> Call[pb.ListOccurrencesResponse, Page[Occurrence]]:
    """A page of occurrences, by start."""
    return Call(
        RESERVATION,
        "ListOccurrences",
        pb.ListOccurrencesRequest(
            reservation_id=reservation_id,
            from_at=wanted.from_at,
            until_at=wanted.until_at,
            cluster=wanted.cluster,
            all=wanted.all,
            page_size=page_size,
            page_token=token,
        ),
        pb.ListOccurrencesResponse,
        lambda reply: Page(
            [occurrence_from_proto(each) for each in reply.occurrences], reply.next_page_token
        ),
    )


def booking_info(
    proto: pb.Reservation,
    occurrences: Sequence[pb.Occurrence] = (),
    *,
    displaced: Iterable[Displaced] = (),
) -> BookingInfo:
    """A reservation with what came along."""
    return read(
        BookingInfo,
        proto,
        spec=spec_from_proto(proto.spec),
        state=state_from_proto(proto.state),
        next=occurrence_from_proto(proto.next) if proto.HasField("next") else None,
        remarks=tuple(proto.remarks),
        occurrences=tuple(occurrence_from_proto(each) for each in occurrences),
        displaced=tuple(displaced),
    )
