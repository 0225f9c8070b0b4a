"""Queues: created, changed and deleted by their users; names are paths."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from atoll.core.model.actor import Actor
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
from atoll.core.model.paging import next_token, page_size, read_token
from atoll.core.model.validate import check_queue
from atoll.core.model.validate_queue import Amounts, check_tree, unknown_kinds
from atoll.ports.store.common import Change
from atoll.ports.store.submission import SubmissionTx
from atoll.submission.usecases.transactions import Transactions

FIELDS: Final[Mapping[str, str]] = {
    "description": "description",
    "max_queued_jobs": "max_queued_jobs",
    "device_limit_blocks": "device_limit",
    "weight": "weight",
    "deserved_blocks": "deserved",
    "kind_limit_blocks": "kind_limits",
    "preempts": "preempts",
}
"""What may be changed: names in the API, and in the model."""

BY_KIND: Final = frozenset({"deserved_blocks", "kind_limit_blocks"})
"""Those of which one device kind may be named: `deserved_blocks.H100`."""


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue with its live jobs by state."""

    queue: Queue
    counts: Mapping[JobState, int]
    notes: tuple[str, ...] = ()
    """What was taken as given but may be a mistake."""


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
            _require_fitting(queue, await _family(tx, queue.name) if queue.deserved else ())
            new = replace(queue, tenant=actor.tenant, created_at=await tx.now())
            if not await tx.add_queue(new):
                raise AlreadyExists(
                    f"there is a queue {queue.name!r} already",
                    code=ErrorCode.QUEUE_EXISTS,
                    metadata={"queue": queue.name},
                )
            await _changed(tx, queue.name)

        await self._run(change)
        return await self._noted(await self.get(actor, queue.name))

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
        _require_known(fields)
        _require_valid(queue)

        async def change(tx: SubmissionTx) -> None:
            # Before the queue itself, so that two who change one tree do not wait for each other.
            family = await _family(tx, queue.name) if _shared_out(fields) else ()
            found = await _locked(tx, actor, queue.name, etag=etag)
            changed = _changed_by(found, queue, fields or tuple(FIELDS))
            _require_valid(changed)
            if changed.deserved != found.deserved:
                _require_fitting(changed, family)
            await tx.update_queue(replace(changed, generation=found.generation + 1))
            await _changed(tx, queue.name)

        await self._run(change)
        return await self._noted(await self.get(actor, queue.name))

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

    async def _noted(self, view: QueueView) -> QueueView:
        if not (view.queue.deserved or view.queue.kind_limits):
            return view
        totals = await self._store.cluster_totals()
        known = {kind for cluster in totals for kind in cluster.devices}
        return replace(view, notes=tuple(unknown_kinds(view.queue, known)))


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


def _require_known(fields: Sequence[str]) -> None:
    for name in fields:
        whole, dot, kind = name.partition(".")
        if whole not in FIELDS or (dot and not (kind and whole in BY_KIND)):
            told = f"{name!r} cannot be changed; it is one of {', '.join(FIELDS)}"
            raise InvalidInput((FieldViolation("update_mask", told, ErrorCode.UNKNOWN_FIELD),))


def _changed_by(found: Queue, wanted: Queue, fields: Sequence[str]) -> Queue:
    values: dict[str, Any] = {}
    for field in fields:
        whole, _, kind = field.partition(".")
        name = FIELDS[whole]
        value = getattr(wanted, name)
        if kind:
            value = _with_kind(values.get(name, getattr(found, name)), dict(value), kind)
        values[name] = value
    return replace(found, **values)


def _with_kind(amounts: Amounts, wanted: Mapping[str, int], kind: str) -> Amounts:
    kept = {other: blocks for other, blocks in amounts if other != kind}
    return tuple(sorted((kept | ({kind: wanted[kind]} if kind in wanted else {})).items()))


def _shared_out(fields: Sequence[str]) -> bool:
    return not fields or any(field.startswith("deserved_blocks") for field in fields)


async def _family(tx: SubmissionTx, name: QueueName) -> list[Queue]:
    # Whoever changes a queue of the same tree meanwhile waits, for the sums are over all of it.
    return await tx.lock_family(QueueName(name.partition(".")[0]))


def _require_fitting(queue: Queue, family: Iterable[Queue]) -> None:
    if violations := check_tree(queue, family):
        raise InvalidInput(tuple(violations))


def _no_such_queue(name: QueueName) -> NotFound:
    return NotFound(
        f"there is no queue {name!r}", code=ErrorCode.QUEUE_NOT_FOUND, metadata={"queue": name}
    )
