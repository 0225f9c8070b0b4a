"""`atoll cancel`, `hold`, `release`, `set-priority`."""

from collections.abc import Callable, Iterable
from typing import Annotated

from cyclopts import Parameter

from atoll.cli import exits
from atoll.cli.follow import move_text
from atoll.cli.job_rows import job_listing
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Format, JobIds, Output
from atoll.cli.render import show
from atoll.client.sync import Client
from atoll.client.views import JobInfo


def cancel(
    job_ids: JobIds,
    /,
    *,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """End jobs. One that runs is asked to stop, and has ended when `atoll wait` says so.

    Args:
        job_ids: Numbers of jobs.
        output: How to print the jobs after it.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        _show(client.cancel(job_ids), output)
    return exits.OK


def hold(
    job_ids: JobIds,
    /,
    *,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Keep queued jobs from being placed, until `atoll release`.

    Args:
        job_ids: Numbers of jobs.
        output: How to print the jobs after it.
        connection: Where the control plane is.
    """
    return _each(job_ids, Client.hold, output, connection=connection)


def release(
    job_ids: JobIds,
    /,
    *,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Let held jobs be placed again.

    Args:
        job_ids: Numbers of jobs.
        output: How to print the jobs after it.
        connection: Where the control plane is.
    """
    return _each(job_ids, Client.release, output, connection=connection)


def set_priority(
    job_id: Annotated[int, Parameter(name="JOB")],
    priority: Annotated[int, Parameter(allow_leading_hyphen=True, name="PRIORITY")],
    /,
    *,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Change the priority of a job that has not ended; higher goes first.

    Args:
        job_id: Number of the job.
        priority: -1000000 to 1000000; `low` is -1000, `normal` 0, `high` 1000, `critical` 2000.
        output: How to print the job after it.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        job = client.set_priority(job_id, priority)
    if output == "table":
        print(f"job {job.id} has priority {job.priority}")
    else:
        show([job], job_listing(), output)
    return exits.OK


def _each(
    job_ids: Iterable[int],
    verb: Callable[[Client, int], JobInfo],
    output: Format,
    *,
    connection: Connection,
) -> int:
    with connection.client() as client:
        _show([verb(client, job_id) for job_id in job_ids], output)
    return exits.OK


def _show(jobs: list[JobInfo], output: Format) -> None:
    if output != "table":
        show(jobs, job_listing(), output)
        return
    for job in jobs:
        print(f"job {job.id} is being cancelled" if job.cancelling else move_text(job))
