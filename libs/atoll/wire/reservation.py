"""Reservations, their occurrences, and refusals of them, as the API shows them."""

from collections.abc import Iterable

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import ClusterName
from atoll.core.model.reservation import (
    CandidateWindow,
    Displaced,
    DisplacedKind,
    Obstacle,
    ObstacleKind,
    Occurrence,
    OccurrenceState,
    Part,
    Reservation,
    ReservationId,
    ReservationState,
)
from atoll.wire.booking import part_to_proto, share_from_proto
from atoll.wire.enums import inverse, known, to_numbers
from atoll.wire.reservation_spec import spec_to_proto

_STATES = to_numbers(ReservationState, pb.ReservationState, prefix="RESERVATION_STATE_")
_STATES_BACK = inverse(_STATES)
_PHASES = to_numbers(OccurrenceState, pb.OccurrenceState, prefix="OCCURRENCE_STATE_")
_PHASES_BACK = inverse(_PHASES)


def reservation_to_proto(
    reservation: Reservation, following: Occurrence | None = None, *, planned: int = 0
) -> pb.Reservation:
    """A reservation with its present or next occurrence, and how many are planned."""
    return pb.Reservation(
        id=reservation.id,
        spec=spec_to_proto(reservation.spec),
        state=_STATES[reservation.state],
        tenant=reservation.tenant,
        created_by=reservation.created_by,
        created_at=reservation.created_at,
        etag=reservation.etag,
        next=None if following is None else occurrence_to_proto(following),
        planned=planned,
        planned_until=reservation.planned_until,
        message=reservation.message,
        remarks=reservation.remarks,
    )


def state_from_proto(number: pb.ReservationState.ValueType) -> ReservationState:
    """Where a reservation is; raises WireError for one that this version does not know."""
    return known(_STATES_BACK, number, what="reservation state")


def phase_from_proto(number: pb.OccurrenceState.ValueType) -> OccurrenceState:
    """Where an occurrence is; raises WireError for one that this version does not know."""
    return known(_PHASES_BACK, number, what="occurrence state")


def occurrence_to_proto(occurrence: Occurrence) -> pb.Occurrence:
    """One window of a reservation."""
    return pb.Occurrence(
        id=occurrence.id,
        reservation_id=occurrence.reservation,
        name=occurrence.name,
        start_at=occurrence.start_at,
        end_at=occurrence.end_at,
        state=_PHASES[occurrence.state],
        parts=parts_to_proto(occurrence.parts),
        start_local=occurrence.start_local,
        message=occurrence.message,
        started_at=occurrence.started_at,
        missing_devices=occurrence.missing_devices,
        used_device_hours=occurrence.used_device_hours,
    )


def occurrence_from_proto(proto: pb.Occurrence) -> Occurrence:
    """The same back."""
    return Occurrence(
        id=OccurrenceId(proto.id),
        reservation=ReservationId(proto.reservation_id),
        name=proto.name,
        start_at=proto.start_at,
        end_at=proto.end_at,
        state=phase_from_proto(proto.state),
        parts=parts_from_proto(proto.parts),
        start_local=proto.start_local,
        message=proto.message,
        started_at=proto.started_at,
        missing_devices=proto.missing_devices,
        used_device_hours=proto.used_device_hours,
    )


def parts_to_proto(parts: Iterable[Part]) -> list[pb.Part]:
    """An occurrence's place."""
    return [part_to_proto(part.cluster, part.shares) for part in parts]


def parts_from_proto(protos: Iterable[pb.Part]) -> tuple[Part, ...]:
    """The same back."""
    return tuple(
        Part(ClusterName(proto.cluster), tuple(share_from_proto(share) for share in proto.shares))
        for proto in protos
    )


def window_to_proto(window: CandidateWindow) -> pb.CandidateWindow:
    """A window that could be had."""
    return pb.CandidateWindow(
        start_at=window.start_at,
        end_at=window.end_at,
        parts=parts_to_proto(window.parts),
        displaced=[displaced_to_proto(each) for each in window.displaced],
        cost_device_seconds=window.cost,
    )


def window_from_proto(proto: pb.CandidateWindow) -> CandidateWindow:
    """The same back."""
    return CandidateWindow(
        start_at=proto.start_at,
        end_at=proto.end_at,
        parts=parts_from_proto(proto.parts),
        displaced=tuple(displaced_from_proto(each) for each in proto.displaced),
    )


def displaced_to_proto(displaced: Displaced) -> pb.Displaced:
    """What gives way."""
    return pb.Displaced(
        kind=displaced.kind.value,
        name=displaced.name,
        queue=displaced.queue,
        devices=displaced.devices,
        device_seconds=displaced.device_seconds,
    )


def displaced_from_proto(proto: pb.Displaced) -> Displaced:
    """The same back."""
    return Displaced(
        kind=DisplacedKind(proto.kind),
        name=proto.name,
        queue=proto.queue,
        devices=proto.devices,
        device_seconds=proto.device_seconds,
    )


def obstacle_to_proto(obstacle: Obstacle) -> pb.Obstacle:
    """What is in the way."""
    return pb.Obstacle(
        kind=obstacle.kind.value,
        name=obstacle.name,
        owner=obstacle.owner,
        cluster=obstacle.cluster,
        amount=obstacle.amount,
        until=obstacle.until,
        message=obstacle.message,
    )


def obstacle_from_proto(proto: pb.Obstacle) -> Obstacle:
    """The same back."""
    return Obstacle(
        kind=ObstacleKind(proto.kind),
        name=proto.name,
        owner=proto.owner,
        cluster=proto.cluster,
        amount=proto.amount,
        until=proto.until,
        message=proto.message,
    )
