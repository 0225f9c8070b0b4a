"""`atoll ls`, `atoll get`."""

import json
import sys
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from atoll.cli import exits
from atoll.cli.job_rows import details, job_listing
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Format, JobIds, Output
from atoll.cli.pairs import labels_of
from atoll.cli.render import aligned, print_yaml, show
from atoll.client.scheduling import Wait
from atoll.client.views import JobInfo
from atoll.core.model.errors import DomainError
from atoll.core.model.lifecycle import JobState

if TYPE_CHECKING:
    from atoll.client.sync import Client

MOST_EXPLAINED: Final = 1_000


def ls(
    *,
    queue: Annotated[str, Parameter(name=("--queue", "-q"))] = "",
    state: Annotated[tuple[JobState, ...], Parameter(negative=())] = (),
    label: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    cluster: str = "",
    array: int = 0,
    limit: Annotated[int, Parameter(name=("--limit", "-n"), show_default=True)] = 50,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """List jobs, newest first.

    Args:
        queue: Only of this queue and those below it.
        state: Only in this state; may be given again.
        label: Only with this label, KEY=VALUE; may be given again.
        cluster: Only those whose live or last attempt is there.
        array: Only members of this array.
        limit: At most so many; 0: all.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        jobs = client.list(
            queue=queue,
            states=state,
            labels=labels_of(label, "label"),
            cluster=cluster,
            array_id=array,
            page_size=min(limit or 500, 500),
        )
        chosen = [job.info for job in islice(jobs, limit or None)]
        more = bool(limit) and len(chosen) == limit and next(jobs, None) is not None
        waits = _waits(client, chosen) if output != "name" else {}
    show(chosen, job_listing(waits), output)
    if more and output in ("table", "wide"):
        print(f"the newest {limit}; --limit 0 shows all", file=sys.stderr)
    return exits.OK


def get(
    job_ids: JobIds,
    /,
    *,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show jobs with everything that is known of them.

    Args:
        job_ids: Numbers of jobs.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        found = [client.get(job_id).info for job_id in job_ids]
        waits = _waits(client, found) if output != "name" else {}
    _show(found, waits, output)
    return exits.OK


def _waits(client: "Client", jobs: list[JobInfo]) -> Mapping[int, Wait]:
    from atoll.client.errors import CallFailed  # loads gRPC

    # A list is worth having without it, and must not wait for it.
    queued = [job.id for job in jobs if job.state is JobState.QUEUED][:MOST_EXPLAINED]
    if not queued:
        return {}
    try:
        return client.waits(queued)
    except (DomainError, CallFailed):
        return {}


def _show(jobs: list[JobInfo], waits: Mapping[int, Wait], output: Format) -> None:
    # One job is one record, not a list of one.
    if output == "table":
        blocks = [aligned(list(details(job, waits)), (False, False)) for job in jobs]
        print("\n\n".join("\n".join(block) for block in blocks))
    elif output == "json" and len(jobs) == 1:
        print(json.dumps(job_listing(waits).record(jobs[0]), indent=2))
    elif output == "yaml" and len(jobs) == 1:
        print_yaml(job_listing(waits).record(jobs[0]))
    else:
        show(jobs, job_listing(waits), output)
