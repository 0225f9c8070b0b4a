"""Output of runs: which attempt is meant, which dispatch replica reaches its agent, and the relay.

Output stays with the agent, which keeps it for a while after the run has ended.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Protocol

from atoll.core.model.actor import Actor
from atoll.core.model.errors import (
    DomainError,
    ErrorCode,
    FailedPrecondition,
    FieldViolation,
    InvalidInput,
    NotFound,
    Unavailable,
)
from atoll.core.model.ids import (
    MAX_ATTEMPTS,
    AttemptId,
    ClusterName,
    JobId,
    attempt_id,
    attempt_name,
)
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import AttemptState
from atoll.ports.store.submission import SubmissionStore
from atoll.submission.usecases.jobs import no_such_jobs

ALL_RANKS: Final = -1
NEVER_RAN: Final = frozenset({AttemptState.REJECTED, AttemptState.VOID})
HOLDER: Final = "holder"
"""Metadata of AGENT_UNREACHABLE: the replica that does hold the session."""


@dataclass(frozen=True, slots=True)
class LogsWanted:
    """What a user asks for."""

    job: JobId
    rank: int = ALL_RANKS
    follow: bool = False
    attempt: int = 0
    """Number of the attempt; 0: the live or last one."""
    offset: int = 0
    """Bytes of the one task's output to leave out."""
    tail_lines: int = 0
    """Only the last lines; 0: all."""


@dataclass(frozen=True, slots=True)
class LogRead:
    """What a dispatch replica is asked for."""

    cluster: ClusterName
    attempt: AttemptId
    rank: int
    follow: bool
    offset: int
    tail_lines: int


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A piece of one task's output."""

    rank: int
    data: bytes
    offset: int


class LogSource(Protocol):
    """Reads output through a dispatch replica."""

    def read(self, holder: str, wanted: LogRead) -> AsyncIterator[LogChunk]:
        """Pieces until the output ends; raises DomainError, AGENT_UNREACHABLE among others."""
        ...


class Logs:
    """Relays output to those whose tenant the job belongs to."""

    def __init__(self, store: SubmissionStore, source: LogSource) -> None:
        self._store = store
        self._source = source

    async def stream(self, actor: Actor, wanted: LogsWanted) -> AsyncIterator[LogChunk]:
        """Pieces of output until it ends.

        Raises NotFound, FailedPrecondition ATTEMPT_NOT_FOUND before the first attempt, and
        Unavailable AGENT_UNREACHABLE.
        """
        _require_one_task_for_an_offset(wanted)
        attempt = await self._attempt(actor, wanted)
        read = LogRead(
            cluster=attempt.cluster,
            attempt=attempt.id,
            rank=wanted.rank,
            follow=wanted.follow,
            offset=wanted.offset,
            tail_lines=wanted.tail_lines,
        )
        holder = await self._holder(attempt.cluster)
        moved = ""
        started = False
        try:
            async for chunk in self._source.read(holder, read):
                started = True
                yield chunk
        except DomainError as error:
            # Once, and only before anything was sent: the session may just have moved.
            moved = error.metadata.get(HOLDER, "")
            if started or error.code is not ErrorCode.AGENT_UNREACHABLE or moved in ("", holder):
                raise
        if moved:
            async for chunk in self._source.read(moved, read):
                yield chunk

    async def _attempt(self, actor: Actor, wanted: LogsWanted) -> Attempt:
        job = await self._store.get_job(actor.tenant, wanted.job)
        if job is None:
            raise no_such_jobs([wanted.job])
        if not job.attempts:
            raise _not_yet(job)
        if wanted.attempt:
            found = await self._numbered(job, wanted.attempt)
        else:
            found = (await self._store.last_attempts([job.id])).get(job.id)
        if found is None:
            raise _no_such_attempt(job, wanted.attempt or job.attempts)
        if found.state in NEVER_RAN:
            raise _never_ran(found)
        _require_rank(found, wanted.rank)
        return found

    async def _numbered(self, job: Job, number: int) -> Attempt | None:
        if not 1 <= number <= MAX_ATTEMPTS:
            return None
        return await self._store.get_attempt(attempt_id(job.id, number))

    async def _holder(self, cluster: ClusterName) -> str:
        found = {c.name: c.holder for c in await self._store.clusters()}.get(cluster, "")
        if not found:
            raise Unavailable(
                f"the agent of cluster {cluster} is not connected; its output cannot be read now",
                code=ErrorCode.AGENT_UNREACHABLE,
                metadata={"cluster": cluster, HOLDER: ""},
            )
        return found


def _require_one_task_for_an_offset(wanted: LogsWanted) -> None:
    if wanted.offset and wanted.rank == ALL_RANKS:
        told = "counts bytes of one task's output: give its rank too"
        raise InvalidInput((FieldViolation("offset", told),))


def _require_rank(attempt: Attempt, rank: int) -> None:
    if rank != ALL_RANKS and all(task.rank != rank for task in attempt.tasks):
        told = f"attempt {attempt_name(attempt.id)} has ranks 0 .. {len(attempt.tasks) - 1}"
        raise InvalidInput((FieldViolation("rank", told),))


def _not_yet(job: Job) -> FailedPrecondition:
    return FailedPrecondition(
        f"job {job.id} is {job.state.value} and has not been placed yet: there is no output",
        code=ErrorCode.ATTEMPT_NOT_FOUND,
        metadata={"job": str(job.id), "state": job.state.value},
    )


def _no_such_attempt(job: Job, number: int) -> NotFound:
    return NotFound(
        f"job {job.id} has no attempt {number}; it has made {job.attempts}",
        code=ErrorCode.ATTEMPT_NOT_FOUND,
        metadata={"job": str(job.id), "attempts": str(job.attempts)},
    )


def _never_ran(attempt: Attempt) -> FailedPrecondition:
    name = attempt_name(attempt.id)
    return FailedPrecondition(
        f"attempt {name} was {attempt.state.value} before it ran: there is no output",
        code=ErrorCode.ATTEMPT_NOT_FOUND,
        metadata={"attempt": name, "state": attempt.state.value},
    )
