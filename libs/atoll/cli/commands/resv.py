"""`atoll resv`: bookings."""

import sys
from typing import Annotated

from cyclopts import App, Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.booking_keys import Booking, key, print_plain
from atoll.cli.booking_options import NO_CAPACITY, NO_OWNERS, NO_TIME, Capacity, Time, Whom
from atoll.cli.booking_text import BOOKINGS, detail_lines, displaced_lines, occurrence_lines
from atoll.cli.booking_wishes import NO_WISHES, Wishes, spec_of
from atoll.cli.commands import resv_calendar, resv_change, resv_look, resv_rules
from atoll.cli.failures import WrongUse
from atoll.cli.moments import moment
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Format, Output
from atoll.cli.render import show
from atoll.client.booking_views import BookingFilter, BookingInfo

app = App(name="resv", help="Book capacity in advance, and see what is booked.")
for command in (
    resv_look.find,
    resv_change.cancel,
    resv_change.extend,
    resv_change.release,
    resv_calendar.calendar,
    resv_calendar.export,
    resv_look.watch,
    resv_rules.app,
):
    app.command(command)
app.command(resv_calendar.import_, name="import")


@app.command
def create(
    name: Booking,
    /,
    *,
    capacity: Capacity = NO_CAPACITY,
    whom: Whom = NO_OWNERS,
    time: Time = NO_TIME,
    wishes: Wishes = NO_WISHES,
    check: Annotated[bool, Parameter(negative=())] = False,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Book: `atoll resv create demo --gpus H100:16 --queue nlp --start +2h --length 4h`.

    Args:
        name: Name of the reservation; jobs ask for it with `reservation: NAME`.
        capacity: What is booked.
        whom: For whom it is booked.
        time: When, and how often.
        wishes: How it is kept.
        check: Only tell what would be booked.
        output: How to print.
        connection: Where the control plane is.
    """
    spec = spec_of(name, capacity, whom, time=time, wishes=wishes, now=SystemClock().now())
    with connection.client() as client:
        made = client.reservations.check(spec) if check else client.reservations.create(spec)
    _show(made, output)
    return exits.OK


@app.command(name="set")
def set_(
    name: Booking,
    /,
    *,
    capacity: Capacity = NO_CAPACITY,
    whom: Whom = NO_OWNERS,
    time: Time = NO_TIME,
    wishes: Wishes = NO_WISHES,
    etag: int = 0,
    check: Annotated[bool, Parameter(negative=())] = False,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Change a reservation; what is not given stays.

    Args:
        name: Its name or number.
        capacity: What is booked.
        whom: For whom it is booked.
        time: When, and how often.
        wishes: How it is kept.
        etag: Only if nobody has changed it since `atoll resv show` showed this etag.
        check: Only tell what would be booked.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        old = client.reservations.get(key(name))
        spec, fields = wishes.changed(old.spec, capacity, whom, time=time, now=SystemClock().now())
        if not fields:
            raise WrongUse("say what to change, such as --length or --gpus")
        made = client.reservations.update(old.id, spec, fields, etag=etag, validate_only=check)
    _show(made, output)
    return exits.OK


@app.command
def ls(
    *,
    queue: Annotated[str, Parameter(name=("--queue", "-q"))] = "",
    cluster: str = "",
    by: str = "",
    since: str = "",
    until: str = "",
    all_: Annotated[bool, Parameter(name=("--all", "-a"), negative=())] = False,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """List reservations by their next start.

    Args:
        queue: Only for this queue, or one below or above it.
        cluster: Only with a place there.
        by: Only by this creator, such as alice or rule:large.
        since: Only those that end after this time; now.
        until: Only those that start before this time.
        all_: Ended and cancelled ones too.
        output: How to print.
        connection: Where the control plane is.
    """
    now = SystemClock().now()
    wanted = BookingFilter(
        from_at=moment(since, "since", now=now) if since else 0.0,
        until_at=moment(until, "until", now=now) if until else 0.0,
        queue=queue,
        created_by=by,
        cluster=cluster,
        all=all_,
    )
    with connection.client() as client:
        show(client.reservations.list(wanted), BOOKINGS, output)
    return exits.OK


@app.command(name="show")
def show_(
    name: Booking, /, *, output: Output = "table", connection: Connection = DEFAULT_CONNECTION
) -> int:
    """Show one reservation with its next occurrences.

    Args:
        name: Its name or number.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        _show(client.reservations.get(key(name)), output)
    return exits.OK


def _show(booking: BookingInfo, output: Format) -> None:
    if output in ("table", "wide"):
        print("\n".join(detail_lines(booking)))
        lines = occurrence_lines(booking.occurrences)
        print("\n".join(["", *lines] if lines else []))
        print("\n".join(displaced_lines(booking.displaced)), file=sys.stderr)
    elif output == "name":
        print(booking.name)
    else:
        print_plain(booking, output)
