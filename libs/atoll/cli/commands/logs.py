"""`atoll logs`."""

from typing import Annotated

from cyclopts import Parameter

from atoll.cli import exits
from atoll.cli.follow import Output, View, detached, follow_to_end, stream
from atoll.cli.notes import Notes
from atoll.cli.options import DEFAULT_CONNECTION, Connection
from atoll.client.job import Job
from atoll.client.streams import ALL_RANKS
from atoll.client.views import JobInfo
from atoll.core.model.errors import ErrorCode, FailedPrecondition


def logs(
    job_id: Annotated[int, Parameter(name="JOB")],
    /,
    *,
    follow: Annotated[bool, Parameter(name=("--follow", "-f"), negative=())] = False,
    rank: int | None = None,
    attempt: int = 0,
    tail: Annotated[int, Parameter(name=("--tail", "-n"))] = 0,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show the output of a job.

    Ends with 0 when the job has succeeded, 100 when it failed, 103 when it was cancelled, 101
    when it has not ended. Ctrl-C detaches; the job goes on.

    Args:
        job_id: Number of the job.
        follow: Wait for the job to start, and go on until it has ended.
        rank: Only of the task with this rank.
        attempt: Of this attempt; the live or last one when not given.
        tail: Only the last lines.
        connection: Where the control plane is.
    """
    view = View(ALL_RANKS if rank is None else rank, attempt, tail)
    with connection.client() as client, Notes() as notes:
        job = client.get(job_id)
        try:
            info = follow_to_end(job, notes, view) if follow else _once(job, view, notes)
        except KeyboardInterrupt:
            notes.rest()
            return detached([job_id], "logs -f")
    return exits.of_state(info.state)


def _once(job: Job, view: View, notes: Notes) -> JobInfo:
    output = Output(many=job.info.task_count > 1 and view.rank == ALL_RANKS)
    try:
        stream(job, view, output, follow=False)
    except FailedPrecondition as error:
        if error.code is not ErrorCode.ATTEMPT_NOT_FOUND:
            raise
        notes.say(f"{error.message}; `atoll logs -f {job.id}` waits for it")
    output.end()
    return job.refresh().info
