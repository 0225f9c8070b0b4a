"""`atoll queue`."""

import json
from typing import Annotated, Final

from cyclopts import App, Parameter

from atoll.cli import exits
from atoll.cli.failures import WrongUse
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.plain import plain
from atoll.cli.render import Column, Listing, print_yaml, show
from atoll.cli.words import devices_text
from atoll.client.views import QueueInfo
from atoll.core.model.resources import BLOCKS_PER_DEVICE

app = App(name="queue", help="Create, list, change and delete queues.")
Name = Annotated[str, Parameter(name="NAME")]
DeviceLimit = Annotated[
    float | None, Parameter(help="Accelerators that its running jobs may hold; 0: no limit.")
]


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
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Create a queue.

    Args:
        name: A path such as team.project.
        description: For people.
        max_queued: Jobs that may wait in it; 0: the service's own bound.
        device_limit: Accelerators that its running jobs may hold.
        connection: Where the control plane is.
    """
    blocks = _blocks(device_limit)
    with connection.client() as client:
        queue = client.create_queue(
            name,
            description=description,
            max_queued_jobs=max_queued,
            device_limit_blocks=blocks or 0,
        )
    print(f"queue {queue.name} created")
    return exits.OK


@app.command(name="set")
def set_(
    name: Name,
    /,
    *,
    description: str | None = None,
    max_queued: int | None = None,
    device_limit: DeviceLimit = None,
    etag: str = "",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Change a queue; what is not given stays.

    Args:
        name: Name of the queue.
        description: For people.
        max_queued: Jobs that may wait in it; 0: the service's own bound.
        device_limit: Accelerators that its running jobs may hold.
        etag: Only if nobody has changed it since `atoll queue get` showed this etag.
        connection: Where the control plane is.
    """
    blocks = _blocks(device_limit)
    if description is None and max_queued is None and blocks is None:
        raise WrongUse("say what to change: --description, --max-queued or --device-limit")
    with connection.client() as client:
        queue = client.update_queue(
            name,
            description=description,
            max_queued_jobs=max_queued,
            device_limit_blocks=blocks,
            etag=etag,
        )
    print(f"queue {queue.name} changed")
    return exits.OK


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


def _blocks(devices: float | None) -> int | None:
    if devices is None:
        return None
    blocks = round(devices * BLOCKS_PER_DEVICE)
    if abs(blocks - devices * BLOCKS_PER_DEVICE) > 1e-9 or blocks < 0:
        raise WrongUse(f"--device-limit {devices}: whole percents of an accelerator, 0 or more")
    return blocks


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
        Column("ETAG", lambda queue: queue.etag, wide=True),
        Column("DESCRIPTION", lambda queue: queue.description or "-"),
    ),
    name=lambda queue: queue.name,
    empty="no queues",
)
