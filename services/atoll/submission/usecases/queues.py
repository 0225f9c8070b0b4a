"""Queues: created, changed and deleted by their users; names are paths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from atoll.core.model.errors import (
    Aborted,
    AlreadyExists,
    ErrorCode,
    FailedPrecondition,
    FieldViolation,
    InvalidInput,
    NotFound,
)
from atoll.core.model.ids import QueueName
from atoll.core.model.job import Queue
from atoll.core.model.lifecycle import JobState
from atoll.core.model.messages import ChangeKind
from atoll.core.model.validate import check_queue
from atoll.ports.store.common import Change
from atoll.ports.store.submission import SubmissionTx
from atoll.submission.usecases.actor import Actor
from atoll.submission.usecases.paging import next_token, page_size, read_token
from atoll.submission.usecases.transactions import Transactions

FIELDS: Final[Mapping[str, str]] = {
    "description": "description",
    "max_queued_jobs": "max_queued_jobs",
    "device_limit_blocks": "device_limit",
}
"""What may be changed: names in the API, and in the model."""


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue with its live jobs by state."""

    queue: Queue
    counts: Mapping[JobState, int]


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Queues by name, and the token of what follows; empty: nothing does."""

    queues: tuple[QueueView, ...]
    next_token: str


class Queues:
    """The queues of a tenant."""

    def __init__(self, transactions: Transactions) -> None:
        self._run = transactions.run
        self._store = transactions.store

    async def create(self, actor: Actor, queue: Queue) -> QueueView:
        """A new queue; raises AlreadyExists QUEUE_EXISTS, whoever has the name."""
        _require_valid(queue)

        async def change(tx: SubmissionTx) -> None:
            new = replace(queue, tenant=actor.tenant, created_at=await tx.now())
            if not await tx.add_queue(new):
                raise AlreadyExists(
                    f"there is a queue {queue.name!r} already",
                    code=ErrorCode.QUEUE_EXISTS,
                    metadata={"queue": queue.name},
                )
            await _changed(tx, queue.name)

        await self._run(change)
        return await self.get(actor, queue.name)

    async def get(self, actor: Actor, name: QueueName) -> QueueView:
        """One queue; raises NotFound."""
        found = await self._store.get_queue(actor.tenant, name)
        if found is None:
            raise _no_such_queue(name)
        return (await self._viewed([found]))[0]

    async def page(self, actor: Actor, *, size: int, token: str) -> QueuePage:
        """A page of queues; raises InvalidInput BAD_PAGE_TOKEN."""
        query = ("queues", actor.tenant)
        after = str(read_token(token, query, shape=[str])[0]) if token else ""
        limit = page_size(size)
        found = await self._store.list_queues(actor.tenant, after=after, limit=limit + 1)
        shown = found[:limit]
        following = next_token(query, [shown[-1].name]) if len(found) > limit else ""
        return QueuePage(tuple(await self._viewed(shown)), following)

    async def update(
        self, actor: Actor, queue: Queue, *, fields: Sequence[str], etag: str
    ) -> QueueView:
        """Change `fields` (all when empty) to the values of `queue`; raises ETAG_MISMATCH."""
        names = _model_fields(fields)
        _require_valid(queue)

        async def change(tx: SubmissionTx) -> None:
            found = await _locked(tx, actor, queue.name, etag=etag)
            values = {name: getattr(queue, name) for name in names}
            changed = replace(found, generation=found.generation + 1, **values)
            await tx.update_queue(changed)
            await _changed(tx, queue.name)

        await self._run(change)
        return await self.get(actor, queue.name)

    async def delete(self, actor: Actor, name: QueueName, *, etag: str) -> None:
        """Delete a queue; raises QUEUE_NOT_EMPTY while jobs of it have not ended."""

        async def change(tx: SubmissionTx) -> None:
            await _locked(tx, actor, name, etag=etag)
            live = await tx.live_jobs_in(name)
            if live:
                raise FailedPrecondition(
                    f"queue {name} holds {live:,} jobs that have not ended",
                    code=ErrorCode.QUEUE_NOT_EMPTY,
                    metadata={"queue": name, "jobs": str(live)},
                )
            await tx.delete_queue(name)
            await _changed(tx, name)

        await self._run(change)

    async def _viewed(self, queues: Sequence[Queue]) -> list[QueueView]:
        counts = await self._store.queue_counts([queue.name for queue in queues])
        return [QueueView(queue, counts.get(queue.name, {})) for queue in queues]


async def _locked(tx: SubmissionTx, actor: Actor, name: QueueName, *, etag: str) -> Queue:
    found = await tx.lock_queue(name)
    if found is None or found.tenant != actor.tenant:
        raise _no_such_queue(name)
    if etag and etag != str(found.generation):
        raise Aborted(
            f"queue {name} has changed: its etag is {found.generation}, not {etag}",
            code=ErrorCode.ETAG_MISMATCH,
            metadata={"queue": name, "etag": str(found.generation)},
        )
    return found


async def _changed(tx: SubmissionTx, name: QueueName) -> None:
    await tx.changed([Change(ChangeKind.QUEUES, names=(name,))])


def _require_valid(queue: Queue) -> None:
    if violations := check_queue(queue):
        raise InvalidInput(tuple(violations))


def _model_fields(fields: Sequence[str]) -> list[str]:
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        told = f"{unknown[0]!r} cannot be changed; it is one of {', '.join(FIELDS)}"
        raise InvalidInput((FieldViolation("update_mask", told, ErrorCode.UNKNOWN_FIELD),))
    return [FIELDS[name] for name in fields or FIELDS]


def _no_such_queue(name: QueueName) -> NotFound:
    return NotFound(
        f"there is no queue {name!r}", code=ErrorCode.QUEUE_NOT_FOUND, metadata={"queue": name}
    )
