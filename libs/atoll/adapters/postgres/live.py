"""Row operations that every writing role's transaction has."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count, groupby
from typing import Final

from atoll.adapters.postgres.rows import (
    ATTEMPT_COLUMNS,
    ATTEMPT_MUTABLE,
    JOB_COLUMNS,
    JOB_MUTABLE,
    attempt_from,
    attempt_mutable,
    job_from,
    job_mutable,
)
from atoll.adapters.postgres.sql import Sql
from atoll.core.model.ids import AttemptId, JobId
from atoll.core.model.job import Attempt, Job
from atoll.core.model.messages import ChangeKind, Event
from atoll.ports.store.common import Change
from atoll.wire.placement import encode_tasks

NOW: Final = "extract(epoch FROM now())::double precision"
"""The time of the transaction: the first statement of one brings it along."""

LOCK_JOBS: Final = (
    f"SELECT {JOB_COLUMNS} FROM jobs j WHERE j.id = ANY($1::bigint[])"
    " ORDER BY j.id FOR NO KEY UPDATE"
)
LOCK_ATTEMPTS: Final = (
    f"SELECT {ATTEMPT_COLUMNS} FROM attempts a WHERE a.id = ANY($1::bigint[])"
    " ORDER BY a.id FOR NO KEY UPDATE"
)


def update_by_id(table: str, columns: Mapping[str, str]) -> str:
    """A statement that writes columns, given by name and type, of many rows; raises `revision`."""
    arrays = ", ".join(f"${at}::{kind}[]" for at, kind in enumerate(columns.values(), 2))
    sets = ", ".join(f"{name} = u.{name}" for name in columns)
    return (
        f"UPDATE {table} t SET {sets}, revision = t.revision + 1"
        f" FROM unnest($1::bigint[], {arrays}) AS u(id, {', '.join(columns)}) WHERE t.id = u.id"
    )


UPDATE_JOBS: Final = update_by_id("jobs", JOB_MUTABLE)
UPDATE_ATTEMPTS: Final = update_by_id("attempts", ATTEMPT_MUTABLE)

# A join: its plan may be from a time when nothing ran, and then holds no list against each row.
END_ALLOCATIONS: Final = """
DELETE FROM allocations l USING unnest($1::bigint[]) AS u(attempt) WHERE l.attempt = u.attempt
"""

SET_TASKS: Final = """
UPDATE attempts a SET tasks = u.tasks, revision = a.revision + 1
FROM unnest($1::bigint[], $2::bytea[]) AS u(id, tasks) WHERE a.id = u.id
"""
END_OTHER_RANKS: Final = """
DELETE FROM allocations l USING unnest($1::bigint[]) AS u(attempt)
WHERE l.attempt = u.attempt AND NOT EXISTS (
    SELECT FROM unnest($2::bigint[], $3::integer[]) AS k(attempt, rank)
    WHERE k.attempt = l.attempt AND k.rank = l.rank
)
"""

# The tenant is the job's: events are filtered by it long after the job itself is gone.
ADD_EVENTS: Final = """
INSERT INTO events (
    job, tenant, queue, event, state, at, attempt, cluster, reason, message, principal
)
SELECT u.job, j.tenant, u.queue, u.event, u.state, u.at, u.attempt, u.cluster, u.reason,
    u.message, u.principal
FROM unnest(
    $1::bigint[], $2::text[], $3::text[], $4::text[], $5::double precision[], $6::bigint[],
    $7::text[], $8::text[], $9::text[], $10::text[]
) WITH ORDINALITY
    AS u(job, queue, event, state, at, attempt, cluster, reason, message, principal, place)
JOIN jobs j ON j.id = u.job ORDER BY u.place
"""

# Every kind knows its shard from its rows; queues and bookings concern all shards.
SHARDS_OF: Final = {
    ChangeKind.JOBS: "SELECT shard, id FROM jobs WHERE id = ANY({keys}::bigint[])",
    ChangeKind.ATTEMPTS: "SELECT shard, id FROM attempts WHERE id = ANY({keys}::bigint[])",
    ChangeKind.NODES: """SELECT c.shard, n.id FROM nodes n JOIN clusters c ON c.name = n.cluster
        WHERE n.id = ANY({keys}::bigint[])""",
    ChangeKind.CLUSTERS: "SELECT shard, name FROM clusters WHERE name = ANY({keys}::text[])",
    ChangeKind.QUEUES: "SELECT NULL::integer, unnest({keys}::text[])",
    ChangeKind.DECISIONS: "SELECT shard, name FROM clusters WHERE name = ANY({keys}::text[])",
    # A booking that has left a shard concerns it, too.
    ChangeKind.BOOKINGS: "SELECT NULL::integer, unnest({keys}::bigint[])",
    # Number 0 is what may be rented, which concerns all shards.
    ChangeKind.INSTANCES: """
        SELECT shard, id FROM burst_instances WHERE id = ANY({keys}::bigint[])
        UNION ALL SELECT NULL, 0 WHERE 0 = ANY({keys}::bigint[])""",
}
NUMBERED: Final = frozenset({
    ChangeKind.JOBS,
    ChangeKind.ATTEMPTS,
    ChangeKind.NODES,
    ChangeKind.BOOKINGS,
    ChangeKind.INSTANCES,
})
GROUND: Final = 0
"""Number that stands for what may be rented among changed instances."""


@cache
def add_changes(kinds: tuple[ChangeKind, ...]) -> str:
    """A statement that says changes of these kinds; for each its keys and its writer."""
    selects = " UNION ALL ".join(
        _select_changes(kind, keys=f"${at}", writer=f"${at + 1}")
        for at, kind in zip(count(1, 2), kinds, strict=False)
    )
    return f"INSERT INTO changes (kind, shard, writer, ids, names) {selects}"


def _select_changes(kind: ChangeKind, *, keys: str, writer: str) -> str:
    numbered = kind in NUMBERED
    ids = "array_agg(f.id)" if numbered else "'{}'::bigint[]"
    names = "'{}'::text[]" if numbered else "array_agg(f.id)"
    found = SHARDS_OF[kind].format(keys=keys)
    return (
        f"SELECT {kind.value}, f.shard, {writer}::uuid, {ids}, {names}"
        f" FROM ({found}) AS f(shard, id) GROUP BY f.shard"
    )


class LiveRowsTx:
    """One transaction. `writer` marks the changes that its own store need not be shown."""

    def __init__(self, sql: Sql, writer: str | None = None) -> None:
        self._sql = sql
        self._writer = writer
        self._now: float | None = None

    async def now(self) -> float:
        """Database time of this transaction, unix seconds."""
        if self._now is None:
            self._now = float(await self._sql.value(f"SELECT {NOW}"))
        return self._now

    async def lock_jobs(self, ids: Iterable[JobId]) -> dict[JobId, Job]:
        """Lock rows by ascending id; those that do not exist are left out."""
        wanted = list(ids)
        rows = await self._sql.rows(LOCK_JOBS, wanted) if wanted else []
        return {JobId(row["id"]): job_from(row) for row in rows}

    async def lock_attempts(self, ids: Iterable[AttemptId]) -> dict[AttemptId, Attempt]:
        """Lock rows by ascending id; those that do not exist are left out."""
        wanted = list(ids)
        rows = await self._sql.rows(LOCK_ATTEMPTS, wanted) if wanted else []
        return {AttemptId(row["id"]): attempt_from(row) for row in rows}

    async def update_jobs(self, jobs: Sequence[Job]) -> None:
        """Write the mutable columns of locked rows; raises `revision` by one."""
        if jobs:
            await self._sql.run(UPDATE_JOBS, *_columns([(j.id, *job_mutable(j)) for j in jobs]))

    async def update_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Write the mutable columns of locked rows; raises `revision` by one."""
        if attempts:
            rows = [(a.id, *attempt_mutable(a)) for a in attempts]
            await self._sql.run(UPDATE_ATTEMPTS, *_columns(rows))

    async def set_tasks(self, attempts: Sequence[Attempt]) -> None:
        """Write what locked attempts hold; allocations of ranks that are not listed are deleted."""
        if not attempts:
            return
        ids = [attempt.id for attempt in attempts]
        kept = [(attempt.id, task.rank) for attempt in attempts for task in attempt.tasks]
        await self._sql.run(SET_TASKS, ids, [encode_tasks(a.tasks) for a in attempts])
        await self._sql.run(
            END_OTHER_RANKS, ids, [attempt for attempt, _ in kept], [rank for _, rank in kept]
        )

    async def end_allocations(self, attempts: Iterable[AttemptId]) -> None:
        """Delete the allocations of attempts; one that has none is no error."""
        if wanted := list(attempts):
            await self._sql.run(END_ALLOCATIONS, wanted)

    async def add_events(self, events: Sequence[Event]) -> None:
        """Append to the history that watches show."""
        if events:
            await self._sql.run(ADD_EVENTS, *_columns([_event_values(e) for e in events]))

    async def changed(self, changes: Sequence[Change]) -> None:
        """Say what this transaction changed: a row per kind and shard."""
        wanted = [change for change in changes if _keys(change)]
        kinds: list[ChangeKind] = []
        values: list[object] = []
        for (kind, echo), group in groupby(sorted(wanted, key=_kind), key=_kind):
            kinds.append(ChangeKind(kind))
            found = {entry for change in group for entry in _keys(change)}
            values += sorted(found), None if echo else self._writer
        if kinds:
            await self._sql.run(add_changes(tuple(kinds)), *values)


def _keys(change: Change) -> tuple[int, ...] | tuple[str, ...]:
    ground = (GROUND,) if change.kind is ChangeKind.INSTANCES else ()
    return change.ids or change.names or ground


def _kind(change: Change) -> tuple[int, bool]:
    return change.kind.value, change.echo


def _columns(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _event_values(event: Event) -> tuple[object, ...]:
    return (
        event.job, event.queue, None if event.event is None else event.event.value,
        event.state.value, event.at, event.attempt, event.cluster,
        None if event.reason is None else event.reason.value, event.message, event.principal,
    )  # fmt: skip
