"""`atoll share`, `prio`."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Format, Output
from atoll.cli.plain import plain
from atoll.cli.reasons import as_of_line
from atoll.cli.render import Column, Listing, aligned, print_yaml, show
from atoll.cli.words import bytes_text, cpus_text, devices_text, plural
from atoll.client.scheduling import Factor, KindShare, Priority, QueueShare

NO_KIND: Final = KindShare("", 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Row:
    """A queue and one kind of devices."""

    queue: QueueShare
    kind: KindShare


def share(
    queue: Annotated[str, Parameter(name="QUEUE")] = "",
    /,
    *,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show what queues hold, deserve and borrow, by kind of accelerator.

    A queue counts for all below it. SHARE is its largest part of anything there is (CPU, memory,
    accelerators) now, PAST the same over the past, decayed.

    Args:
        queue: This queue and those below it; all when left out.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        found = client.shares(queue)
    if output in ("table", "wide"):
        show(list(_rows(found)), SHARES, output)
    else:
        show(found, QUEUES, output)
    return exits.OK


def prio(
    job_id: Annotated[int, Parameter(name="JOB")],
    /,
    *,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show every factor of a job's place in the order, the first compared first.

    Args:
        job_id: Number of the job.
        output: How to print; `name` prints the names of the factors.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        found = client.priority(job_id)
    _show(job_id, found, output)
    return exits.OK


def _rows(found: Iterable[QueueShare]) -> Iterator[Row]:
    for queue in found:
        yield from (Row(queue, kind) for kind in queue.kinds or (NO_KIND,))


def _show(job_id: int, found: Priority, output: Format) -> None:
    if output == "name":
        print("\n".join(factor.name for factor in found.factors))
    elif output in ("json", "jsonl"):
        print(json.dumps(plain(found), indent=2 if output == "json" else None))
    elif output == "yaml":
        print_yaml(plain(found))
    else:
        print("\n".join(_lines(job_id, found)))


def _lines(job_id: int, found: Priority) -> Iterator[str]:
    yield f"job {job_id}: {found.state.value}"
    if not found.factors:
        yield "only queued jobs have a place in the order"
        return
    rows = [("", "FACTOR", "VALUE", "OF")]
    rows += [
        (str(n), factor.name, _value(factor), factor.queue or "the job")
        for n, factor in enumerate(found.factors, start=1)
    ]
    yield from aligned(rows, (True, False, True, False))
    ahead = plural(found.jobs_ahead, "job")
    yield f"Order {found.order}; by priority and age alone {ahead} would be before it."
    yield as_of_line(found.as_of, SystemClock().now())


def _value(factor: Factor) -> str:
    return f"{factor.value:,.0f}s" if factor.unit == "s" else f"{factor.value:,.4g}"


def _percent(part: float) -> str:
    return f"{100 * part:.1f}%"


def _amount(blocks: int) -> str:
    return devices_text(blocks) if blocks else "-"


SHARES: Final[Listing[Row]] = Listing(
    columns=(
        Column("QUEUE", lambda row: row.queue.queue),
        Column("WEIGHT", lambda row: f"{row.queue.weight:g}", right=True),
        Column("KIND", lambda row: row.kind.kind or "-"),
        Column("USED", lambda row: _amount(row.kind.held), right=True),
        Column("DESERVED", lambda row: _amount(row.kind.deserved), right=True),
        Column("BORROWED", lambda row: _amount(row.kind.borrowed), right=True),
        Column("OF", lambda row: _amount(row.kind.capacity), right=True),
        Column("SHARE", lambda row: _percent(row.queue.dominant_share), right=True),
        Column("PAST", lambda row: _percent(row.queue.past_share), right=True),
        Column("CPU", lambda row: cpus_text(row.queue.cpu_milli), wide=True, right=True),
        Column("MEMORY", lambda row: bytes_text(row.queue.memory_bytes), wide=True, right=True),
        Column("BIAS", lambda row: f"{row.queue.bias:.3g}", wide=True, right=True),
    ),
    name=lambda row: row.queue.queue,
    empty="no queues",
)
QUEUES: Final[Listing[QueueShare]] = Listing((), lambda queue: queue.queue, "no queues")
