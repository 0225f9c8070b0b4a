"""`atoll resv find`, `watch`."""

import json
from datetime import datetime
from typing import Annotated, Literal

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.booking_keys import key, print_plain
from atoll.cli.booking_options import NO_CAPACITY, NO_TIME, Capacity, Time
from atoll.cli.booking_text import candidate_lines, obstacle_lines
from atoll.cli.failures import WrongUse
from atoll.cli.moments import length, moment
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.plain import plain
from atoll.client.booking_views import BookingEventInfo
from atoll.core.model.reservation import Preference


def find(
    *,
    capacity: Capacity = NO_CAPACITY,
    time: Time = NO_TIME,
    most: Annotated[int, Parameter(name=("--most", "-n"))] = 3,
    priority: int = 0,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Find windows: `atoll resv find --gpus H100:64 --length 8h --earliest +1d`; books nothing.

    Args:
        capacity: What is wanted.
        time: How long; --earliest and --latest-end bound it, now and a year if not given.
        most: How many windows.
        priority: Bookings below it are not in the way.
        output: How to print.
        connection: Where the control plane is.
    """
    if not time.length or time.start:
        raise WrongUse("say how long (--length 4h), and --earliest or --latest-end, not --start")
    now = SystemClock().now()
    with connection.client() as client:
        found = client.reservations.find(
            capacity.wanted(),
            length(time.length, "length"),
            earliest_at=_at(time.earliest, "earliest", zone=time.zone, now=now),
            latest_end_at=_at(time.latest_end, "latest-end", zone=time.zone, now=now),
            most=most,
            preference=Preference(time.prefer),
            priority=priority,
        )
    if output in ("table", "wide", "name"):
        words = list(candidate_lines(found.windows))
        print("\n".join(words or ["no window; in the way:", *obstacle_lines(found.obstacles)]))
    else:
        print_plain(found, output)
    return exits.OK if found.windows else exits.NEVER_FITS


def watch(
    name: Annotated[str, Parameter(name="NAME")] = "",
    /,
    *,
    queue: Annotated[str, Parameter(name=("--queue", "-q"))] = "",
    cursor: str = "",
    output: Annotated[Literal["table", "jsonl"], Parameter(name=("--output", "-o"))] = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show what happens to bookings, as it happens, until Ctrl-C.

    Args:
        name: Only of this one; of all when left out.
        queue: Only of this queue.
        cursor: Go on after this one, which `-o jsonl` shows with every event.
        output: How to print.
        connection: Where the control plane is.
    """
    try:
        with connection.client() as client:
            number = client.reservations.get(key(name)).id if name else 0
            for event in client.reservations.watch(cursor, queue=queue, reservation_id=number):
                if output == "jsonl":
                    print(json.dumps(plain(event)), flush=True)
                else:
                    print(_event_line(event), flush=True)
    except KeyboardInterrupt:
        pass
    return exits.OK


def _at(text: str, option: str, *, zone: str, now: float) -> float:
    return moment(text, option, now=now, zone=zone) if text else 0.0


def _event_line(event: BookingEventInfo) -> str:
    clock = datetime.fromtimestamp(event.at).astimezone().strftime("%H:%M:%S")
    return f"{clock}  {event.name:<20} {event.event:<10} {event.message}".rstrip()
