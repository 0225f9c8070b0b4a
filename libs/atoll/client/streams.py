"""What a watch and a stream of output remember, so that they go on where they broke."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.api.submission.v1 import submission_pb2 as submission
from atoll.client import reading
from atoll.client.errors import LogsDropped
from atoll.client.views import Event, LogChunk
from atoll.core.model.errors import ErrorCode, FailedPrecondition, Unavailable
from atoll.core.model.lifecycle import TERMINAL_JOB

WATCH: Final = "/atoll.api.submission.v1.SubmissionService/WatchJobs"
LOGS: Final = "/atoll.api.submission.v1.SubmissionService/StreamLogs"
ALL_RANKS: Final = -1
MOST_WATCHED: Final = 10_000
_BROKEN: Final = frozenset({
    ErrorCode.UNAVAILABLE,
    ErrorCode.AGENT_UNREACHABLE,
    ErrorCode.TIMED_OUT,
})


@dataclass(slots=True)
class Watching:
    """A watch: what it asks for, and how far it has come."""

    cursor: str = ""
    queue: str = ""
    job_ids: Sequence[int] = ()

    def request(self) -> submission.WatchJobsRequest:
        """What to ask now."""
        # More ids than a request takes: all events come, and the caller chooses.
        ids = self.job_ids if len(self.job_ids) <= MOST_WATCHED else ()
        return submission.WatchJobsRequest(cursor=self.cursor, queue=self.queue, job_ids=ids)

    def events(self, reply: submission.WatchJobsResponse) -> list[Event]:
        """The events of a reply; each carries a cursor that repeats none before it.

        Only the reply as a whole has a new cursor: whoever goes on from an event in its middle
        sees the reply's events again.
        """
        last = len(reply.events) - 1
        seen = [
            reading.event_of(event, reply.cursor if n == last else self.cursor)
            for n, event in enumerate(reply.events)
        ]
        self.cursor = reply.cursor
        return seen


@dataclass(slots=True)
class Tailing:
    """A stream of output: what it asks for, and what the caller has of each rank."""

    job_id: int
    rank: int = ALL_RANKS
    follow: bool = False
    attempt: int = 0
    tail_lines: int = 0
    have: dict[int, int] = field(default_factory=dict)

    def request(self) -> submission.StreamLogsRequest:
        """What to ask now. The server can leave out bytes of one rank only."""
        return submission.StreamLogsRequest(
            job_id=self.job_id,
            rank=self.rank,
            follow=self.follow,
            attempt=self.attempt,
            offset=self.have.get(self.rank, 0),
            tail_lines=0 if self.have else self.tail_lines,
        )

    def chunks(self, reply: submission.StreamLogsResponse) -> Iterator[LogChunk]:
        """The part of a reply that the caller does not have yet."""
        chunk = reading.log_chunk(reply)
        known = max(0, self.have.get(chunk.rank, 0) - chunk.offset)
        self.have[chunk.rank] = max(self.have.get(chunk.rank, 0), chunk.offset + len(chunk.data))
        if known < len(chunk.data):
            yield LogChunk(chunk.rank, chunk.data[known:], chunk.offset + known)

    def waits_for_start(self, error: FailedPrecondition) -> bool:
        """True when there is no output yet, and the caller wants to wait for it."""
        return self.follow and not self.attempt and error.code is ErrorCode.ATTEMPT_NOT_FOUND

    def dropped(self, error: Exception) -> Exception:
        """What to raise for the failure of the stream."""
        if isinstance(error, Unavailable) and error.code in _BROKEN:
            have = dict(self.have) if self.have else {max(self.rank, 0): 0}
            return LogsDropped(f"the stream of output broke: {error.message}", have)
        return error


def offsets(resume: Mapping[int, int] | int | None, rank: int) -> dict[int, int]:
    """Bytes that the caller has, by rank; a number is about the one rank asked for."""
    if resume is None:
        return {}
    return {max(rank, 0): resume} if isinstance(resume, int) else dict(resume)


def ended(events: Iterable[Event]) -> frozenset[int]:
    """The jobs that have come to an end by these events."""
    return frozenset(event.job_id for event in events if event.state in TERMINAL_JOB)
