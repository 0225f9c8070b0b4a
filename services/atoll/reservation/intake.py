"""Requests of the API as the use cases take them."""

import hashlib

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.core.model.actor import Actor
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import ClusterName
from atoll.core.model.reservation import ReservationId
from atoll.ports.store.bookings import OccurrenceFilter, ReservationFilter
from atoll.reservation.usecases.calendars import Defaults
from atoll.reservation.usecases.change import Update
from atoll.reservation.usecases.create import Draft
from atoll.reservation.usecases.give_back import Which
from atoll.reservation.usecases.look import Extent, Wanted
from atoll.wire.reservation_spec import preference_from_proto, spec_from_proto, what_from_proto


def draft_of(request: pb.CreateReservationRequest) -> Draft:
    """A booking. What tells a repeated call from another: all of its spec."""
    body = request.spec.SerializeToString(deterministic=True)
    return Draft(
        spec_from_proto(request.spec),
        key=request.request_id.lower(),
        body_hash=hashlib.sha256(body).digest(),
    )


def update_of(request: pb.UpdateReservationRequest) -> Update:
    """A change; without a mask of all that a spec has."""
    paths = list(request.update_mask.paths) or [
        field.name for field, _ in request.spec.ListFields()
    ]
    return Update(spec_from_proto(request.spec), paths, only_check=request.validate_only)


def which_of(
    request: pb.CancelReservationRequest
    | pb.ExtendReservationRequest
    | pb.ReleaseReservationRequest,
) -> Which:
    """A reservation, and perhaps one occurrence of it."""
    etag = 0 if isinstance(request, pb.ReleaseReservationRequest) else request.etag
    return Which(ReservationId(request.id), OccurrenceId(request.occurrence_id), etag=etag)


def reservations_of(request: pb.ListReservationsRequest, actor: Actor) -> ReservationFilter:
    """Which reservations a list is to show."""
    return ReservationFilter(
        actor.tenant,
        ends_after=request.from_at,
        starts_before=request.until_at,
        queue=request.queue,
        created_by=request.created_by,
        cluster=request.cluster,
        over=request.all,
    )


def occurrences_of(request: pb.ListOccurrencesRequest, actor: Actor) -> OccurrenceFilter:
    """Which occurrences a list is to show."""
    return OccurrenceFilter(
        actor.tenant,
        reservation=ReservationId(request.reservation_id),
        ends_after=request.from_at,
        starts_before=request.until_at,
        cluster=request.cluster,
        over=request.all,
    )


def wanted_of(request: pb.FindWindowRequest) -> Wanted:
    """What windows are asked for."""
    return Wanted(
        what_from_proto(request.what),
        request.length_s,
        earliest_at=request.earliest_at,
        latest_end_at=request.latest_end_at,
        most=request.most,
        preference=preference_from_proto(request.preference),
        priority=request.priority,
    )


def extent_of(request: pb.GetCalendarRequest) -> Extent:
    """Which part of the calendar is asked for."""
    return Extent(
        from_at=request.from_at,
        until_at=request.until_at,
        step_s=request.step_s,
        clusters=tuple(ClusterName(name) for name in request.clusters),
        kinds=tuple(request.kinds),
    )


def defaults_of(request: pb.ImportCalendarRequest) -> Defaults:
    """What the events of a calendar do not say themselves."""
    what = what_from_proto(request.what) if request.HasField("what") else None
    return Defaults(what, request.priority, only_check=request.validate_only)
