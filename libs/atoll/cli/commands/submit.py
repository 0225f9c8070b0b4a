"""`atoll submit`."""

import sys
from typing import Annotated

from cyclopts import Parameter

from atoll.cli import exits
from atoll.cli.job_rows import job_listing, told_text
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Format, Output
from atoll.cli.render import show
from atoll.cli.wanted import Wanted
from atoll.client.views import JobInfo

Command = Annotated[str, Parameter(name="--command", show=False)]
DEFAULT_WANTED = Wanted()


def submit(
    file: Annotated[str | None, Parameter(name="FILE")] = None,
    /,
    *,
    command: Command = "",
    wanted: Wanted = DEFAULT_WANTED,
    request_id: str | None = None,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Submit the jobs of a file, or a command: `atoll submit --gpus 8 -- python train.py`.

    Prints one number a job. All jobs of a file are written in one transaction; when this command
    ends well they are safe. Options change what the file says.

    Args:
        file: A YAML file, one job a document; `-` reads standard input.
        command: The command.
        wanted: What the jobs need.
        request_id: A UUID: a repeated submit with the same one finds the same jobs again.
        output: How to print.
        connection: Where the control plane is.
    """
    specs = wanted.specs(file, command, verb="submit")
    with connection.client() as client:
        jobs = [job.info for job in client.submit(specs, request_id=request_id)]
    _show(jobs, output)
    return exits.OK


def _show(jobs: list[JobInfo], output: Format) -> None:
    if output != "table":
        show(jobs, job_listing(), output)
        return
    for job in jobs:
        print(job.id)
        if told := told_text(job):
            print(told, file=sys.stderr)
    if sys.stderr.isatty():
        first = jobs[0].id
        print(
            f"follow: atoll logs -f {first}   why it waits: atoll explain {first}", file=sys.stderr
        )
