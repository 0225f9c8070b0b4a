"""`atoll resv cancel`, `extend`, `release`."""

from typing import Annotated

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.booking_keys import Booking, key
from atoll.cli.booking_text import occurrence_lines
from atoll.cli.failures import WrongUse
from atoll.cli.moments import length, moment
from atoll.cli.options import DEFAULT_CONNECTION, Connection
from atoll.client.booking_views import BookingInfo
from atoll.core.model.reservation import Occurrence


def cancel(
    name: Booking,
    /,
    *,
    occurrence: int = 0,
    reason: str = "",
    etag: int = 0,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """End a reservation, or one occurrence of it.

    Args:
        name: Its name or number.
        occurrence: Only this one, by its number.
        reason: For people.
        etag: Only if nobody has changed it since.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        booking = client.reservations.get(key(name))
        client.reservations.cancel(booking.id, occurrence_id=occurrence, etag=etag, reason=reason)
    print(f"{_named(booking, occurrence)} cancelled")
    return exits.OK


def extend(
    name: Booking,
    /,
    *,
    until: str = "",
    by: str = "",
    occurrence: int = 0,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Move the end of the occurrence that runs, or of the next one.

    Args:
        name: Its name or number.
        until: The new end: 2026-12-07T18:00+01:00, or +2h from now.
        by: Or how much longer: 2h.
        occurrence: This one, by its number.
        connection: Where the control plane is.
    """
    if bool(until) == bool(by):
        raise WrongUse("say either --until TIME or --by LENGTH")
    with connection.client() as client:
        booking = client.reservations.get(key(name))
        if until:
            end = moment(until, "until", now=SystemClock().now(), zone=booking.spec.when.zone)
        else:
            end = _chosen(booking, occurrence).end_at + length(by, "by")
        made = client.reservations.extend(booking.id, end, occurrence_id=occurrence)
    print("\n".join(occurrence_lines([made])))
    return exits.OK


def release(
    name: Booking,
    /,
    *,
    node: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    occurrence: int = 0,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Give back the occurrence that runs, or some nodes of it, before its end.

    Args:
        name: Its name or number.
        node: Only CLUSTER/NODE; may be given again.
        occurrence: This one, by its number.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        booking = client.reservations.get(key(name))
        made = client.reservations.release(booking.id, occurrence_id=occurrence, nodes=node)
    print("\n".join(occurrence_lines([made])))
    return exits.OK


def _chosen(booking: BookingInfo, occurrence: int) -> Occurrence:
    """The numbered occurrence, or the one that runs or comes next."""
    if not occurrence:
        if booking.next is None:
            raise WrongUse(f"{booking.name} has no occurrence to come")
        return booking.next
    for each in booking.occurrences:
        if each.id == occurrence:
            return each
    raise WrongUse(f"{booking.name} has no occurrence {occurrence} to come")


def _named(booking: BookingInfo, occurrence: int) -> str:
    return f"occurrence {occurrence} of {booking.name}" if occurrence else booking.name
