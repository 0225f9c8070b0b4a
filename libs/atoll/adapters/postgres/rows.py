"""Rows of jobs and attempts, and back."""

import json
from dataclasses import replace
from functools import lru_cache
from typing import Final

from atoll.adapters.postgres.sql import Record
from atoll.core.model.ids import (
    AttemptId,
    ClusterName,
    Epoch,
    JobId,
    QueueName,
    ShardId,
    Tenant,
)
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import AttemptState, AttemptWish, JobState, JobWish, StopCause
from atoll.core.model.plan import request_of
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import JobSpec
from atoll.wire.placement import decode_tasks, encode_tasks
from atoll.wire.request import encode_request
from atoll.wire.spec import encode_secrets, encode_spec, parse_spec, spec_from_proto

JOB_FIXED: Final = (
    "id", "tenant", "principal", "queue", "name", "labels", "array_id", "array_index",
    "depends_on", "begin_at", "spec_priority", "trace", "submitted_at", "shard", "revision",
    "deadline_at", "shape", "spec", "secrets",
)  # fmt: skip
JOB_MUTABLE: Final = {
    "priority": "integer",
    "state": "text",
    "wish": "text",
    "reason": "text",
    "message": "text",
    "attempts": "integer",
    "failures": "integer",
    "rollbacks": "integer",
    "preemptions": "integer",
    "attempt": "bigint",
    "cluster": "text",
    "exit_code": "integer",
    "placed_at": "double precision",
    "accepted_at": "double precision",
    "started_at": "double precision",
    "ended_at": "double precision",
    "generation": "bigint",
    "guaranteed": "boolean",
}
JOB_INSERTED: Final = (*JOB_FIXED, *JOB_MUTABLE)
JOB_COLUMNS: Final = ", ".join(
    f"j.{name}" for name in JOB_INSERTED if name not in {"labels", "shape", "secrets"}
)

ATTEMPT_FIXED: Final = (
    "id", "cluster", "shard", "epoch_generation", "epoch_revision", "number", "tasks",
    "created_at", "bind_by", "revision",
)  # fmt: skip
ATTEMPT_MUTABLE: Final = {
    "state": "text",
    "wish": "text",
    "cause": "text",
    "reason": "text",
    "message": "text",
    "exit_code": "integer",
    "accepted_at": "double precision",
    "started_at": "double precision",
    "ended_at": "double precision",
    "generation": "integer",
    "resized": "integer",
    "changed_at": "double precision",
    "done": "double precision",
}
ATTEMPT_INSERTED: Final = (*ATTEMPT_FIXED, *ATTEMPT_MUTABLE)
ATTEMPT_COLUMNS: Final = ", ".join(f"a.{name}" for name in ATTEMPT_INSERTED)

CACHED_SPECS: Final = 8192
CACHED_BYTES: Final = 4096
"""Larger specs are rare, and are not kept: what is cached must stay small."""

# Plain dictionaries: calling an enum's class takes ten times as long.
JOB_STATES: Final = {state.value: state for state in JobState}
JOB_WISHES: Final = {wish.value: wish for wish in JobWish}
ATTEMPT_STATES: Final = {state.value: state for state in AttemptState}
ATTEMPT_WISHES: Final = {wish.value: wish for wish in AttemptWish}
STOP_CAUSES: Final = {cause.value: cause for cause in StopCause}


def job_fixed(job: Job) -> tuple[object, ...]:
    """Values of JOB_FIXED."""
    spec = job.spec
    return (
        job.id, job.tenant, job.principal, job.queue, job.name, json.dumps(dict(spec.labels)),
        spec.array_id, spec.array_index, spec.depends_on, spec.begin_at, spec.priority,
        job.trace, job.submitted_at, job.shard, job.revision, spec.deadline_at,
        encode_request(request_of(spec)), encode_spec(spec, secrets=False), encode_secrets(spec),
    )  # fmt: skip


def job_mutable(job: Job) -> tuple[object, ...]:
    """Values of JOB_MUTABLE."""
    return (
        job.priority, job.state.value, job.wish.value, _text(job.reason), job.message,
        job.attempts, job.failures, job.rollbacks, job.preemptions, job.attempt, job.cluster,
        job.exit_code, job.placed_at, job.accepted_at, job.started_at, job.ended_at, job.generation,
        job.guaranteed,
    )  # fmt: skip


def job_from(row: Record) -> Job:
    """A job from JOB_COLUMNS; its secrets have no values."""
    return Job(
        id=JobId(row["id"]),
        tenant=Tenant(row["tenant"]),
        principal=row["principal"],
        queue=QueueName(row["queue"]),
        name=row["name"],
        spec=spec_from(row),
        priority=row["priority"],
        submitted_at=row["submitted_at"],
        state=JOB_STATES[row["state"]],
        wish=JOB_WISHES[row["wish"]],
        reason=_reason(row["reason"]),
        message=row["message"],
        attempts=row["attempts"],
        failures=row["failures"],
        rollbacks=row["rollbacks"],
        preemptions=row["preemptions"],
        attempt=row["attempt"],
        cluster=row["cluster"],
        exit_code=row["exit_code"],
        placed_at=row["placed_at"],
        accepted_at=row["accepted_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        shard=ShardId(row["shard"]),
        trace=row["trace"],
        guaranteed=row["guaranteed"],
        revision=row["revision"],
        generation=row["generation"],
    )


def spec_from(row: Record) -> JobSpec:
    """The spec of a job's row, without the values of its secrets."""
    spec = _parsed_spec(row["spec"])
    array_id, index, priority = row["array_id"], row["array_index"], row["spec_priority"]
    if (array_id, index, priority) == (None, 0, 0):
        return spec
    return replace(spec, array_id=array_id, array_index=index, priority=priority)


def attempt_fixed(attempt: Attempt) -> tuple[object, ...]:
    """Values of ATTEMPT_FIXED."""
    return (
        attempt.id, attempt.cluster, attempt.shard, attempt.epoch.generation,
        attempt.epoch.revision, attempt.number, encode_tasks(attempt.tasks), attempt.created_at,
        attempt.bind_by, attempt.revision,
    )  # fmt: skip


def attempt_mutable(attempt: Attempt) -> tuple[object, ...]:
    """Values of ATTEMPT_MUTABLE."""
    return (
        attempt.state.value, attempt.wish.value, attempt.cause.value, _text(attempt.reason),
        attempt.message, attempt.exit_code, attempt.accepted_at, attempt.started_at,
        attempt.ended_at, attempt.generation, attempt.resized, attempt.changed_at, attempt.done,
    )  # fmt: skip


def attempt_from(row: Record) -> Attempt:
    """An attempt from ATTEMPT_COLUMNS."""
    return Attempt(
        id=AttemptId(row["id"]),
        cluster=ClusterName(row["cluster"]),
        shard=ShardId(row["shard"]),
        epoch=Epoch(row["epoch_generation"], row["epoch_revision"]),
        number=row["number"],
        tasks=decode_tasks(row["tasks"]),
        created_at=row["created_at"],
        bind_by=row["bind_by"],
        state=ATTEMPT_STATES[row["state"]],
        wish=ATTEMPT_WISHES[row["wish"]],
        cause=STOP_CAUSES[row["cause"]],
        reason=_reason(row["reason"]),
        message=row["message"],
        exit_code=row["exit_code"],
        accepted_at=row["accepted_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        generation=row["generation"],
        resized=row["resized"],
        changed_at=row["changed_at"],
        done=row["done"],
        revision=row["revision"],
    )


def _parsed_spec(data: bytes) -> JobSpec:
    return _cached_spec(data) if len(data) <= CACHED_BYTES else _decoded_spec(data)


@lru_cache(maxsize=CACHED_SPECS)
def _cached_spec(data: bytes) -> JobSpec:
    return _decoded_spec(data)


def _decoded_spec(data: bytes) -> JobSpec:
    return spec_from_proto(parse_spec(data))


def _text(reason: ReasonCode | None) -> str | None:
    return None if reason is None else reason.value


def _reason(text: str | None) -> ReasonCode | None:
    return None if text is None else ReasonCode(text)
