"""`atoll resv calendar`, `export`, `import`."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.booking_keys import print_plain
from atoll.cli.booking_options import NO_CAPACITY, Capacity
from atoll.cli.calendar_chart import chart, width_for
from atoll.cli.calendar_picture import draw
from atoll.cli.failures import WrongUse
from atoll.cli.moments import length, moment
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.render import aligned

STDIO = "-"
WEEK_S = 7 * 86_400.0
MOST_CELLS = 168
Words = Annotated[tuple[str, ...], Parameter(negative=())]


def calendar(
    *,
    since: str = "now",
    until: str = "",
    step: str = "",
    cluster: Words = (),
    kind: Words = (),
    png: Path | None = None,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show what is booked and free over time, as a chart.

    Args:
        since: From this time on.
        until: Until then; a week later.
        step: Length of a cell; as fits the terminal.
        cluster: Only this one; may be given again.
        kind: Only this kind of accelerator; may be given again.
        png: Write a picture there instead.
        output: How to print.
        connection: Where the control plane is.
    """
    now = SystemClock().now()
    start = moment(since, "since", now=now)
    end = moment(until, "until", now=now) if until else start + WEEK_S
    if end <= start:
        raise WrongUse(f"--until {until} is not after --since {since}")
    with connection.client() as client:
        found = client.reservations.calendar(
            start,
            end,
            step_s=length(step, "step") if step else _step(end - start, picture=png is not None),
            clusters=cluster,
            kinds=kind,
        )
    if png is not None:
        draw(found, png)
        print(f"{png} written")
    elif output in ("table", "wide", "name"):
        print("\n".join(chart(found)))
    else:
        print_plain(found, output)
    return exits.OK


def export(
    *,
    queue: Annotated[str, Parameter(name=("--queue", "-q"))] = "",
    cluster: str = "",
    since: str = "",
    until: str = "",
    file: Annotated[str, Parameter(name=("--file", "-f"))] = STDIO,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Write bookings as iCalendar, for calendar programs.

    Args:
        queue: Only for this queue.
        cluster: Only in this cluster.
        since: From this time on; now.
        until: Until then; a year later.
        file: Write it there; standard output if not given.
        connection: Where the control plane is.
    """
    now = SystemClock().now()
    with connection.client() as client:
        text = client.reservations.export_ical(
            queue=queue,
            cluster=cluster,
            from_at=moment(since, "since", now=now) if since else 0.0,
            until_at=moment(until, "until", now=now) if until else 0.0,
        )
    if file == STDIO:
        sys.stdout.write(text)
    else:
        Path(file).write_text(text, encoding="utf-8", newline="")
        print(f"{file} written")
    return exits.OK


def import_(
    file: Annotated[str, Parameter(name="FILE")],
    /,
    *,
    capacity: Capacity = NO_CAPACITY,
    priority: int = 0,
    check: Annotated[bool, Parameter(negative=())] = False,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Book the events of an iCalendar as maintenance; the same UID again changes its booking.

    Args:
        file: The calendar; `-` for standard input.
        capacity: What an event books that does not say so itself.
        priority: Priority of the bookings.
        check: Only tell what would be booked.
        output: How to print.
        connection: Where the control plane is.
    """
    text = Path(file).read_text(encoding="utf-8")
    with connection.client() as client:
        events = client.reservations.import_ical(
            text, what=capacity.what(), priority=priority, validate_only=check
        )
    if output not in ("table", "wide", "name"):
        print_plain(events, output)
    elif events:
        rows = [(e.outcome, e.name or "-", e.message or e.uid) for e in events]
        print("\n".join(aligned([("OUTCOME", "RESERVATION", ""), *rows], (False,) * 3)))
    else:
        print("no events in it", file=sys.stderr)
    refused = any(event.outcome == "refused" for event in events)
    return exits.NOT_ALLOWED if refused else exits.OK


def _step(seconds: float, *, picture: bool) -> float:
    columns = shutil.get_terminal_size().columns
    cells = MOST_CELLS if picture else min(MOST_CELLS, width_for(columns, ["x" * 24]))
    # Whole minutes, so that cells begin where people expect it.
    return max(60.0, -(-seconds // (cells * 60.0)) * 60.0)
