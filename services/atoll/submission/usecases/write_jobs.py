"""Writes the jobs of many calls in one transaction; each call has an outcome of its own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from atoll.core.model.actor import Actor
from atoll.core.model.deadline import Chance, Verdict
from atoll.core.model.errors import AlreadyExists, DomainError, ErrorCode, NotFound
from atoll.core.model.ids import JobId, QueueName, ShardId
from atoll.core.model.job import Job, Queue, SubmitRequest
from atoll.core.model.lifecycle import JobState
from atoll.core.model.messages import ChangeKind, Event
from atoll.ports.store.common import Change
from atoll.ports.store.submission import Intake, SubmissionTx
from atoll.submission.usecases.bounds import Rooms
from atoll.submission.usecases.deadlines import Verdicts
from atoll.submission.usecases.drafts import Member, with_ids


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a call wrote, or had written before."""

    jobs: tuple[JobId, ...]
    replayed: bool
    verdicts: tuple[Verdict | None, ...] = ()
    """By job, what those with a deadline are told; empty when none has one, and for repeats."""


@dataclass(frozen=True, slots=True)
class Call:
    """A checked call, ready to be written."""

    actor: Actor
    request: SubmitRequest
    """Its `jobs` are filled in when the ids are known."""
    members: tuple[Member, ...]
    shards: tuple[ShardId, ...]
    """By member."""
    adding: Mapping[QueueName, int]
    """Jobs by queue."""
    trace: str
    verdicts: Verdicts


def make_call(
    actor: Actor,
    request: SubmitRequest,
    *,
    members: tuple[Member, ...],
    shards: tuple[ShardId, ...],
    trace: str,
    verdicts: Verdicts,
) -> Call:
    """A call with its sums."""
    adding = Counter(QueueName(member.spec.queue) for member in members)
    return Call(actor, request, members, shards, adding, trace, verdicts)


async def write_calls(
    tx: SubmissionTx, calls: Sequence[Call], *, most_queued: int
) -> list[Submitted | DomainError]:
    """By call: what it wrote, or why it was refused. Refused calls leave nothing behind."""
    intake = await _intake(tx, calls)
    refused = refusals(intake, calls, most_queued=most_queued)
    taken = [call for call in calls if call.request.key not in refused]
    written = await _write(tx, taken, intake) if taken else {}
    return [refused.get(call.request.key) or written[call.request.key] for call in calls]


async def check_calls(tx: SubmissionTx, calls: Sequence[Call], *, most_queued: int) -> None:
    """Raise the first refusal that `write_calls` would give; nothing is written."""
    refused = refusals(await _intake(tx, calls, jobs=0), calls, most_queued=most_queued)
    for refusal in refused.values():
        raise refusal


def refusals(intake: Intake, calls: Sequence[Call], *, most_queued: int) -> dict[str, DomainError]:
    """By request key: why a call cannot be written now; those that can are left out."""
    rooms = Rooms(intake.queues, intake.queued, most_queued=most_queued)
    found: dict[str, DomainError] = {}
    for call in calls:
        try:
            _require_queues(call, intake.queues)
            rooms.take(call.adding)
        except DomainError as refusal:
            found[call.request.key] = refusal
    return found


def outcome(call: Call, standing: SubmitRequest) -> Submitted | DomainError:
    """What a call gets whose key is taken."""
    if standing.body_hash == call.request.body_hash:
        return Submitted(standing.jobs, replayed=True)
    return AlreadyExists(
        f"request_id {standing.key} was used for other jobs; take a new one",
        code=ErrorCode.REQUEST_REUSED,
        metadata={"request_id": standing.key},
    )


async def _intake(tx: SubmissionTx, calls: Sequence[Call], *, jobs: int | None = None) -> Intake:
    names = sorted({name for call in calls for name in call.adding})
    count = sum(len(call.members) for call in calls) if jobs is None else jobs
    return await tx.intake(names, jobs=count)


def _require_queues(call: Call, queues: Mapping[QueueName, Queue]) -> None:
    for name in call.adding:
        queue = queues.get(name)
        if queue is None or queue.tenant != call.actor.tenant:
            raise NotFound(
                f"there is no queue {name!r}; `atoll queue ls` lists those there are",
                code=ErrorCode.QUEUE_NOT_FOUND,
                metadata={"queue": name},
            )


async def _write(
    tx: SubmissionTx, calls: Sequence[Call], intake: Intake
) -> dict[str, Submitted | DomainError]:
    ids = iter(intake.ids)
    numbered = [(call, tuple(next(ids) for _ in call.members)) for call in calls]
    standing = await tx.add_requests([replace(call.request, jobs=jobs) for call, jobs in numbered])
    results: dict[str, Submitted | DomainError] = {}
    new = []
    for (call, jobs), earlier in zip(numbered, standing, strict=True):
        if earlier is not None:
            results[call.request.key] = outcome(call, earlier)
        else:
            results[call.request.key] = Submitted(jobs, replayed=False, verdicts=_told(call))
            new.append((call, jobs))
    if new:
        await _insert(tx, new, now=intake.now)
    return results


async def _insert(
    tx: SubmissionTx, new: Sequence[tuple[Call, tuple[JobId, ...]]], *, now: float
) -> None:
    jobs = [job for call, ids in new for job in _jobs(call, ids, now)]
    await tx.add_jobs(jobs)
    await tx.add_events([
        Event(job.id, job.queue, None, job.state, now, principal=job.principal) for job in jobs
    ])
    await tx.changed([Change(ChangeKind.JOBS, tuple(job.id for job in jobs))])


def _jobs(call: Call, ids: tuple[JobId, ...], now: float) -> list[Job]:
    promised = {at for at, told in call.verdicts.items() if told.chance is Chance.GUARANTEED}
    return [
        Job(
            id=job,
            tenant=call.actor.tenant,
            principal=call.actor.principal,
            queue=QueueName(spec.queue),
            name=spec.name,
            spec=spec,
            priority=spec.priority,
            submitted_at=now,
            state=JobState.QUEUED,
            shard=shard,
            trace=call.trace,
            guaranteed=at in promised,
        )
        for at, (job, spec, shard) in enumerate(
            zip(ids, with_ids(call.members, ids), call.shards, strict=True)
        )
    ]


def _told(call: Call) -> tuple[Verdict | None, ...]:
    verdicts = call.verdicts
    return tuple(verdicts.get(at) for at in range(len(call.members))) if verdicts else ()
