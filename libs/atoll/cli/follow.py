"""Follows one job: its moves on stderr, its output on stdout, over broken streams, to its end."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Final

from atoll.adapters.system import SystemIds
from atoll.cli import exits
from atoll.cli.notes import Notes
from atoll.client.errors import LogsDropped
from atoll.client.retry import delay_s
from atoll.client.streams import ALL_RANKS
from atoll.client.views import JobInfo, LogChunk
from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.lifecycle import JobState

if TYPE_CHECKING:
    from atoll.client.job import Job

MOST_DROPS: Final = 20
"""Streams that may break one after the other without a byte between them."""


class Output:
    """Writes what tasks print; lines of several tasks carry their rank."""

    def __init__(self, *, many: bool) -> None:
        self._many = many
        self._open: dict[int, bytes] = {}
        self._stream = sys.stdout.buffer

    def write(self, chunk: LogChunk) -> None:
        """Write a piece; with several tasks only whole lines, so that they do not mix."""
        if not self._many:
            self._stream.write(chunk.data)
        else:
            *lines, rest = (self._open.get(chunk.rank, b"") + chunk.data).split(b"\n")
            self._open[chunk.rank] = rest
            for line in lines:
                self._line(chunk.rank, line)
        self._stream.flush()

    def end(self) -> None:
        """Write lines that were never finished."""
        for rank, rest in sorted(self._open.items()):
            if rest:
                self._line(rank, rest)
        self._open.clear()
        self._stream.flush()

    def _line(self, rank: int, line: bytes) -> None:
        self._stream.write(b"[%d] %s\n" % (rank, line))


@dataclass(frozen=True, slots=True)
class View:
    """Which output to show."""

    rank: int = ALL_RANKS
    attempt: int = 0
    tail_lines: int = 0


def follow_to_end(job: "Job", notes: Notes, view: View = View()) -> JobInfo:
    """Tell moves and show output until the job has ended; how it ended."""
    output = Output(many=job.info.task_count > 1 and view.rank == ALL_RANKS)
    shown = ""
    for info in job.states():
        notes.say(move_text(info))
        if info.attempt != shown and (info.done or info.state is JobState.RUNNING):
            shown = info.attempt
            one = replace(view, attempt=number_of(shown))
            _show_attempt(job, one, output=output, notes=notes)
        elif not info.done:
            notes.wait(f"job {info.id}: {_awaited(info)}")
    notes.rest()
    return job.info


def stream(job: "Job", view: View, output: Output, *, follow: bool = True) -> None:
    """Show the output of an attempt until it ends, over streams that break; raises after many."""
    have: dict[int, int] | None = None
    drops = 0
    while True:
        try:
            for chunk in job.logs(
                follow=follow,
                rank=view.rank,
                attempt=view.attempt,
                tail_lines=view.tail_lines,
                resume=have,
            ):
                drops = 0
                output.write(chunk)
            return
        except LogsDropped as error:
            have, drops = error.offsets, drops + 1
            if drops >= MOST_DROPS:
                raise
        Event().wait(delay_s(drops, SystemIds().jitter()))


def move_text(info: JobInfo) -> str:
    """One line about where a job is."""
    head = f"job {info.id} {info.state.value.lower()}"
    match info.state:
        case JobState.ASSIGNED | JobState.RUNNING:
            nodes = sorted({task.node_name for task in info.tasks})
            more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
            return f"{head} on {info.cluster}{f', {nodes[0]}{more}' if nodes else ''}"
        case JobState.FAILED if info.exit_code is not None:
            return f"{head}: exit code {info.exit_code}{_because(info)}"
        case JobState.QUEUED if info.attempts:
            return f"{head} again{_because(info)}"
        case _:
            return f"{head}{_because(info)}"


def number_of(attempt: str) -> int:
    """`2` of `1042.2`."""
    return int(attempt.rpartition(".")[2] or 0)


def detached(job_ids: Sequence[int], command: str) -> int:
    """Ctrl-C: nothing happens to the jobs; how to attach again."""
    shown = " ".join(str(job_id) for job_id in job_ids)
    print(
        f"\ndetached; nothing happens to the job{'s' if len(job_ids) > 1 else ''}. "
        f"Attach again: atoll {command} {shown}",
        file=sys.stderr,
    )
    return exits.NOT_FINISHED


def _show_attempt(job: "Job", view: View, *, output: Output, notes: Notes) -> None:
    notes.rest()
    try:
        stream(job, view, output)
    except DomainError as error:
        # An attempt that never ran has no output; a later one may have some.
        if error.code is not ErrorCode.ATTEMPT_NOT_FOUND:
            notes.say(f"job {job.id}: its output cannot be read: {error.message}")
    output.end()


def _awaited(info: JobInfo) -> str:
    return "starting" if info.state is JobState.ASSIGNED else f"waiting in queue {info.queue}"


def _because(info: JobInfo) -> str:
    told = ": ".join(part for part in (info.reason, info.message) if part)
    return f" ({told})" if told else ""
