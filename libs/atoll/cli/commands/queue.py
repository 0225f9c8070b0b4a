"""`atoll queue`."""

import json
import sys
from dataclasses import dataclass
from typing import Annotated, Final, TypedDict

from cyclopts import App, Parameter

from atoll.cli import exits
from atoll.cli.failures import WrongUse
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.pairs import blocks_of, kinds_of
from atoll.cli.plain import plain
from atoll.cli.render import Column, Listing, print_yaml, show
from atoll.cli.words import devices_text, kinds_text
from atoll.client.views import QueueInfo

app = App(name="queue", help="Create, list, change and delete queues.")
Name = Annotated[str, Parameter(name="NAME")]
DeviceLimit = Annotated[
    str | None, Parameter(help="Accelerators that its running jobs may hold; 0: no limit.")
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Shares:
    """Its part of the capacity."""

    weight: Annotated[
        float | None, Parameter(help="Its part of what siblings borrow, beside theirs; 1.")
    ] = None
    deserved: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="What it may always claim back, KIND=NUMBER of accelerators; may be given again.",
        ),
    ] = ()
    limit: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="Hard limit of a kind, KIND=NUMBER of accelerators; 0: none; may be given again.",
        ),
    ] = ()
    preempts: Annotated[
        bool | None, Parameter(help="Whether its jobs of higher priority may stop lower ones.")
    ] = None

    def changes(self) -> "Changes":
        """What is given, as the client takes it."""
        given: Changes = {}
        if self.weight is not None:
            given["weight"] = self.weight
        if self.deserved:
            given["deserved_blocks"] = kinds_of(self.deserved, "deserved")
        if self.limit:
            given["kind_limit_blocks"] = kinds_of(self.limit, "limit")
        if self.preempts is not None:
            given["preempts"] = self.preempts
        return given


class Changes(TypedDict, total=False):
    """Fields of a queue that are about shares."""

    weight: float
    deserved_blocks: dict[str, int]
    kind_limit_blocks: dict[str, int]
    preempts: bool


DEFAULT_SHARES = Shares()


@app.command
def ls(*, output: Output = "table", connection: Connection = DEFAULT_CONNECTION) -> int:
    """List queues with their live jobs.

    Args:
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        show(client.queues(), QUEUES, output)
    return exits.OK


@app.command
def get(
    name: Name, /, *, output: Output = "table", connection: Connection = DEFAULT_CONNECTION
) -> int:
    """Show one queue.

    Args:
        name: Name of the queue.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        queue = client.get_queue(name)
    if output == "json":
        print(json.dumps(plain(queue), indent=2))
    elif output == "yaml":
        print_yaml(plain(queue))
    else:
        show([queue], QUEUES, output)
    return exits.OK


@app.command
def create(
    name: Name,
    /,
    *,
    description: str = "",
    max_queued: int = 0,
    device_limit: DeviceLimit = None,
    shares: Shares = DEFAULT_SHARES,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Create a queue: `atoll queue create team --weight 2 --deserved H100=8 --limit H100=16`.

    Args:
        name: A path such as team.project.
        description: For people.
        max_queued: Jobs that may wait in it; 0: the service's own bound.
        device_limit: Accelerators that its running jobs may hold.
        shares: Its part of the capacity.
        connection: Where the control plane is.
    """
    blocks, changes = _blocks(device_limit), shares.changes()
    with connection.client() as client:
        queue = client.create_queue(
            name,
            description=description,
            max_queued_jobs=max_queued,
            device_limit_blocks=blocks or 0,
            **changes,
        )
    return _done(queue, "created")


@app.command(name="set")
def set_(
    name: Name,
    /,
    *,
    description: str | None = None,
    max_queued: int | None = None,
    device_limit: DeviceLimit = None,
    shares: Shares = DEFAULT_SHARES,
    etag: str = "",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Change a queue; what is not given stays, other kinds of devices too.

    Args:
        name: Name of the queue.
        description: For people.
        max_queued: Jobs that may wait in it; 0: the service's own bound.
        device_limit: Accelerators that its running jobs may hold.
        shares: Its part of the capacity.
        etag: Only if nobody has changed it since `atoll queue get` showed this etag.
        connection: Where the control plane is.
    """
    blocks, changes = _blocks(device_limit), shares.changes()
    if description is None and max_queued is None and blocks is None and not changes:
        raise WrongUse("say what to change, such as --weight, --deserved or --max-queued")
    with connection.client() as client:
        queue = client.update_queue(
            name,
            description=description,
            max_queued_jobs=max_queued,
            device_limit_blocks=blocks,
            etag=etag,
            **changes,
        )
    return _done(queue, "changed")


@app.command
def delete(name: Name, /, *, etag: str = "", connection: Connection = DEFAULT_CONNECTION) -> int:
    """Delete a queue that holds no live job.

    Args:
        name: Name of the queue.
        etag: Only if nobody has changed it since `atoll queue get` showed this etag.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        client.delete_queue(name, etag=etag)
    print(f"queue {name} deleted")
    return exits.OK


def _done(queue: QueueInfo, done: str) -> int:
    print(f"queue {queue.name} {done}")
    for note in queue.notes:
        print(f"note: {note}", file=sys.stderr)
    return exits.OK


def _blocks(devices: str | None) -> int | None:
    return None if devices is None else blocks_of(devices, "device-limit")


def _count(state: str) -> Column[QueueInfo]:
    return Column(state, lambda queue: str(queue.job_counts.get(state, 0)), right=True)


QUEUES: Final[Listing[QueueInfo]] = Listing(
    columns=(
        Column("QUEUE", lambda queue: queue.name),
        _count("QUEUED"),
        _count("HELD"),
        _count("ASSIGNED"),
        _count("RUNNING"),
        Column("MAX QUEUED", lambda queue: str(queue.max_queued_jobs or "-"), right=True),
        Column(
            "DEVICE LIMIT",
            lambda q: devices_text(q.device_limit_blocks) if q.device_limit_blocks else "-",
            right=True,
        ),
        Column("WEIGHT", lambda queue: f"{queue.weight:g}", right=True),
        Column("DESERVED", lambda queue: kinds_text(queue.deserved_blocks)),
        Column("LIMITS", lambda queue: kinds_text(queue.kind_limit_blocks)),
        Column("PREEMPTS", lambda queue: "yes" if queue.preempts else "no", wide=True),
        Column("ETAG", lambda queue: queue.etag, wide=True),
        Column("DESCRIPTION", lambda queue: queue.description or "-"),
    ),
    name=lambda queue: queue.name,
    empty="no queues",
)
