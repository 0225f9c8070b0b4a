"""`atoll wait`."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from cyclopts import Parameter

from atoll.cli import exits
from atoll.cli.failures import WrongUse
from atoll.cli.follow import detached, move_text
from atoll.cli.notes import Notes
from atoll.cli.options import DEFAULT_CONNECTION, Connection, JobIds
from atoll.cli.words import plural
from atoll.client.errors import TimedOut
from atoll.client.job import Job
from atoll.client.sync import Client
from atoll.core.model.lifecycle import JobState

NOT_STARTED = (JobState.QUEUED, JobState.HELD)


def wait(
    job_ids: JobIds,
    /,
    *,
    timeout: str | None = None,
    quiet: Annotated[bool, Parameter(negative=())] = False,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Wait until jobs have ended.

    Ends with 0 when all have succeeded, 100 when one failed, 103 when one was cancelled, 102 when
    there is none of that number. At the timeout 7 when one has not even started, else 101.
    Ctrl-C stops waiting; the jobs go on.

    Args:
        job_ids: Numbers of jobs.
        timeout: Wait at most so long: 90, 5m, 2h.
        quiet: Do not tell progress.
        connection: Where the control plane is.
    """
    timeout_s = _seconds(timeout)
    with connection.client() as client, Notes(quiet=quiet) as notes:
        jobs = [client.get(job_id) for job_id in dict.fromkeys(job_ids)]
        try:
            _await_all(client, jobs, timeout_s=timeout_s, notes=notes)
        except TimedOut:
            notes.say(_late(jobs))
            return _at_timeout(jobs)
        except KeyboardInterrupt:
            notes.rest()
            return detached([job.id for job in jobs], "wait")
    return _worst(job.state for job in jobs)


def _await_all(
    client: Client, jobs: Sequence[Job], *, timeout_s: float | None, notes: Notes
) -> None:
    left = len(jobs)
    notes.wait(f"waiting for {plural(left, 'job')}")
    for job in client.as_completed(jobs, timeout_s):
        left -= 1
        notes.say(move_text(job.info))
        if left:
            notes.wait(f"waiting for {plural(left, 'job')}")


def _seconds(timeout: str | None) -> float | None:
    if timeout is None:
        return None
    from atoll.client.spec.quantities import duration_s

    try:
        return duration_s(timeout)
    except ValueError as error:
        raise WrongUse(f"--timeout: {error}") from None


def _late(jobs: Iterable[Job]) -> str:
    states = ", ".join(f"{job.id} is {job.state.value}" for job in jobs if not job.done)
    return f"not ended in time: {states}"


def _at_timeout(jobs: Sequence[Job]) -> int:
    pending = any(job.state in NOT_STARTED for job in jobs)
    return exits.STILL_PENDING if pending else exits.NOT_FINISHED


def _worst(states: Iterable[JobState]) -> int:
    codes = {exits.of_state(state) for state in states}
    order = (exits.JOB_FAILED, exits.CANCELLED, exits.NOT_FINISHED)
    return next((code for code in order if code in codes), exits.OK)
