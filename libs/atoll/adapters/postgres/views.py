"""The shard as the leader sees it: all of it, or what changed since a cursor."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeVar

from atoll.adapters.postgres.burst_views import read_changed_rentals, read_ground, read_rentals
from atoll.adapters.postgres.cluster_rows import (
    CLUSTERS,
    CLUSTERS_OF_SHARD,
    NODE_COLUMNS,
    QUEUE_COLUMNS,
    cluster_from,
    node_from,
    queue_from,
)
from atoll.adapters.postgres.cursors import CHANGES_KEPT_S, HERE, MARGIN_S, Position, expired
from atoll.adapters.postgres.live import GROUND
from atoll.adapters.postgres.rows import ATTEMPT_COLUMNS, JOB_STATES, JOB_WISHES, attempt_from
from atoll.adapters.postgres.sql import CHUNK_ROWS, Chunks, Record, Sql
from atoll.adapters.postgres.windows import LIVE_WINDOWS, read_windows, window_from
from atoll.core.model.booking import marks_of, with_own
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, ShardId, job_of
from atoll.core.model.inventory import Avoidance
from atoll.core.model.messages import ChangeKind
from atoll.core.model.plan import Nomination, PendingJob, RunFacts, immune_until, shape_key
from atoll.ports.store.placement import AttemptView, JobView, ShardDelta
from atoll.wire.placement import decode_tasks
from atoll.wire.request import decode_request

T = TypeVar("T")

JOB_VIEWS: Final = """
SELECT j.id, j.revision, j.queue, j.priority, j.submitted_at, j.shape, j.attempts, j.begin_at,
    j.depends_on, j.trace, j.deadline_at, j.guaranteed, j.preemptions, j.state, j.wish, j.attempt,
    j.placed_at, j.accepted_at, j.principal, j.labels
FROM jobs j
"""
ATTEMPT_VIEWS: Final = f"""
SELECT {ATTEMPT_COLUMNS}, a.suspects, a.rejected_inventory, j.queue, j.wish AS job_wish, j.shape,
    j.priority, j.submitted_at, j.deadline_at, j.guaranteed, j.preemptions, j.principal, j.labels
FROM attempts a JOIN jobs j ON j.id = a.id >> 16
"""
LIVE_JOBS: Final = f"{JOB_VIEWS} WHERE j.shard = $1 AND j.outcome IS NULL ORDER BY j.id"
LIVE_ATTEMPTS: Final = f"{ATTEMPT_VIEWS} WHERE a.shard = $1 AND a.live ORDER BY a.id"
LIVE_NODES: Final = f"""
SELECT {NODE_COLUMNS} FROM nodes n JOIN clusters c ON c.name = n.cluster WHERE c.shard = $1
    AND (n.present OR EXISTS (SELECT 1 FROM allocations l WHERE l.node = n.id))
ORDER BY n.id
"""
JOBS_NUMBERED: Final = f"{JOB_VIEWS} WHERE j.id = ANY($1::bigint[]) ORDER BY j.id"
ATTEMPTS_NUMBERED: Final = f"{ATTEMPT_VIEWS} WHERE a.id = ANY($1::bigint[]) ORDER BY a.id"
NODES_NUMBERED: Final = (
    f"SELECT {NODE_COLUMNS} FROM nodes n WHERE n.id = ANY($1::bigint[]) ORDER BY n.id"
)
CLUSTERS_NAMED: Final = f"{CLUSTERS} WHERE c.name = ANY($1::text[]) ORDER BY c.name"
QUEUES_NAMED: Final = (
    f"SELECT {QUEUE_COLUMNS} FROM queues q WHERE q.name = ANY($1::text[]) ORDER BY q.name"
)
AVOIDANCES: Final = """
SELECT v.* FROM avoidances v JOIN clusters c ON c.name = v.cluster WHERE c.shard = $1
ORDER BY v.cluster, v.node, v.shape_key
"""
FORECASTS: Final = "SELECT record FROM forecasts WHERE shard = $1"
PAST_ATTEMPTS: Final = f"""
{ATTEMPT_VIEWS} WHERE a.shard = $1 AND NOT a.live AND a.state = $2 ORDER BY a.id DESC LIMIT $3
"""
NOMINATIONS: Final = "SELECT * FROM nominations WHERE shard = $1 ORDER BY job"

CHANGES_SINCE: Final = f"""
WITH here AS MATERIALIZED (SELECT {HERE}),
    lost AS MATERIALIZED (
        SELECT xid >= pg_snapshot_xmax($1::text::pg_snapshot) AS lost
        FROM horizons WHERE name = 'changes' AND until > 0
    )
SELECT here.*, coalesce((SELECT lost FROM lost), false) AS lost, c.kind, c.ids, c.names
FROM here LEFT JOIN LATERAL (
    SELECT kind, ids, names FROM changes
    WHERE xid >= pg_snapshot_xmin($1::text::pg_snapshot)
        AND NOT pg_visible_in_snapshot(xid, $1::text::pg_snapshot)
        AND (shard = $2 OR shard IS NULL) AND writer IS DISTINCT FROM $3::uuid
) AS c ON true
"""


@dataclass(slots=True)
class Changed:
    """What rows of `changes` tell."""

    position: Position
    ids: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    names: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    @property
    def empty(self) -> bool:
        """Nothing that a leader looks at."""
        return not self.ids and not (self.names.keys() - {ChangeKind.DECISIONS.value})

    @property
    def many(self) -> bool:
        """Whether reading the rows may take long."""
        return any(len(ids) > CHUNK_ROWS for ids in self.ids.values())


async def read_here(sql: Sql) -> Position:
    """Where the open snapshot stands."""
    row = await sql.row(f"SELECT {HERE}")
    assert row is not None
    return Position.of(row)


async def read_changes(sql: Sql, start: Position, *, shard: ShardId, writer: str) -> Changed:
    """What changed since `start`, but for the writer's own. Raises CURSOR_EXPIRED."""
    rows = await sql.rows(CHANGES_SINCE, start.snapshot, shard, writer)
    here = Position.of(rows[0])
    start.require_same_life(here)
    if rows[0]["lost"] or here.at - start.at > CHANGES_KEPT_S - MARGIN_S:
        raise expired("changes after it were dropped")
    changed = Changed(here)
    for row in rows:
        if row["kind"] is not None:
            changed.ids[row["kind"]].update(row["ids"])
            changed.names[row["kind"]].update(row["names"])
    return changed


async def read_all(sql: Sql, shard: ShardId) -> ShardDelta:
    """All live rows of the open snapshot."""
    cursor = (await read_here(sql)).cursor()
    nodes = await _converted(sql.chunks(LIVE_NODES, shard), node_from)
    clusters = await sql.rows(CLUSTERS_OF_SHARD, shard)
    queues = await sql.rows(f"SELECT {QUEUE_COLUMNS} FROM queues q ORDER BY q.name")
    return ShardDelta(
        cursor=cursor,
        jobs=await _converted(sql.chunks(LIVE_JOBS, shard), job_view),
        attempts=await _converted(sql.chunks(LIVE_ATTEMPTS, shard), attempt_view),
        nodes=nodes,
        clusters=tuple(cluster_from(row) for row in clusters),
        queues=tuple(queue_from(row) for row in queues),
        avoidances=tuple(_avoidance(row) for row in await sql.rows(AVOIDANCES, shard)),
        nominations=tuple(_nomination(row) for row in await sql.rows(NOMINATIONS, shard)),
        forecasts=await _forecasts(sql, shard),
        windows=await _converted(sql.chunks(LIVE_WINDOWS, shard), window_from),
        rentals=await read_rentals(sql, shard),
        burst=await read_ground(sql),
    )


async def read_changed(sql: Sql, changed: Changed, shard: ShardId) -> ShardDelta:
    """The rows that changed, as they stand in the open snapshot."""
    jobs = sorted(changed.ids[ChangeKind.JOBS])
    attempts = sorted(changed.ids[ChangeKind.ATTEMPTS])
    nodes = sorted(changed.ids[ChangeKind.NODES])
    clusters = sorted(changed.names[ChangeKind.CLUSTERS])
    queues = sorted(changed.names[ChangeKind.QUEUES])
    instances = sorted(changed.ids[ChangeKind.INSTANCES])
    found = await _found(sql, QUEUES_NAMED, queues, convert=queue_from)
    windows, gone = await read_windows(sql, shard, sorted(changed.ids[ChangeKind.BOOKINGS]))
    return ShardDelta(
        cursor=changed.position.cursor(),
        jobs=await _found(sql, JOBS_NUMBERED, jobs, convert=job_view),
        attempts=await _found(sql, ATTEMPTS_NUMBERED, attempts, convert=attempt_view),
        nodes=await _found(sql, NODES_NUMBERED, nodes, convert=node_from),
        clusters=await _found(sql, CLUSTERS_NAMED, clusters, convert=cluster_from),
        queues=found,
        queues_gone=tuple(QueueName(q) for q in queues if q not in {f.name for f in found}),
        windows=windows,
        windows_gone=gone,
        rentals=await read_changed_rentals(sql, shard, instances),
        burst=await read_ground(sql) if GROUND in instances else None,
    )


def job_view(row: Record) -> JobView:
    """A job from JOB_VIEWS."""
    (
        job, revision, queue, priority, submitted_at, shape, attempts, begin_at, depends_on, trace,
        deadline_at, guaranteed, preemptions, state, wish, attempt, placed_at, accepted_at,
        principal, labels,
    ) = row  # fmt: skip
    pending = PendingJob(
        id=JobId(job),
        revision=revision,
        queue=QueueName(queue),
        priority=priority,
        submitted_at=submitted_at,
        request=decode_request(shape),
        attempts=attempts,
        begin_at=begin_at,
        depends_on=tuple(depends_on),
        trace=trace,
        deadline_at=deadline_at,
        guaranteed=guaranteed,
        preemptions=preemptions,
    )
    return JobView(
        pending,
        JOB_STATES[state],
        JOB_WISHES[wish],
        attempt=attempt,
        placed_at=placed_at,
        accepted_at=accepted_at,
        marks=with_own(job_marks(principal, labels), pending.id),
    )


def attempt_view(row: Record) -> AttemptView:
    """An attempt from ATTEMPT_VIEWS."""
    request = decode_request(row["shape"])
    attempt = attempt_from(row)
    return AttemptView(
        attempt=attempt,
        queue=QueueName(row["queue"]),
        job_wish=JOB_WISHES[row["job_wish"]],
        requeue_on_lost=request.needs_guard,
        shape_key=shape_key(request),
        suspects=tuple(row["suspects"]),
        rejected_inventory=row["rejected_inventory"],
        run=RunFacts(
            job=job_of(attempt.id),
            priority=row["priority"],
            submitted_at=row["submitted_at"],
            started_at=attempt.created_at,
            terms=request.terms,
            deadline_at=row["deadline_at"],
            guaranteed=row["guaranteed"],
            preemptions=row["preemptions"],
            immune_until=immune_until(
                request.terms, row["preemptions"], started_at=attempt.created_at
            ),
            apart=request.anti_affinity,
            reservation=request.reservation,
            marks=with_own(job_marks(row["principal"], row["labels"]), job_of(attempt.id)),
        ),
    )


@lru_cache(maxsize=1 << 16)
def job_marks(principal: str, labels: str) -> tuple[str, ...]:
    """Marks of a job by its user and labels, as JSON. Jobs have few different ones."""
    return marks_of(principal, json.loads(labels).items() if labels != "{}" else ())


async def _forecasts(sql: Sql, shard: ShardId) -> str:
    row = await sql.row(FORECASTS, shard)
    return str(row["record"]) if row is not None else ""


def _nomination(row: Record) -> Nomination:
    return Nomination(
        job=JobId(row["job"]),
        cluster=ClusterName(row["cluster"]),
        queue=QueueName(row["queue"]),
        tasks=decode_tasks(row["tasks"]),
        until=row["until"],
        victims=tuple(AttemptId(victim) for victim in row["victims"]),
    )


def _avoidance(row: Record) -> Avoidance:
    return Avoidance(
        cluster=ClusterName(row["cluster"]),
        node=None if row["node"] < 0 else NodeId(row["node"]),
        shape_key=row["shape_key"],
        rejections=row["rejections"],
        until=row["until"],
    )


async def _found(
    sql: Sql, statement: str, keys: Sequence[object], *, convert: Callable[[Record], T]
) -> tuple[T, ...]:
    if len(keys) > CHUNK_ROWS:
        return await _converted(sql.chunks(statement, keys), convert)
    return tuple(map(convert, await sql.rows(statement, keys))) if keys else ()


async def _converted(chunks: Chunks, convert: Callable[[Record], T]) -> tuple[T, ...]:
    # By chunks, so that the event loop, and with it the leader's lease, gets its turn between.
    found: list[T] = []
    async with aclosing(chunks) as each:
        async for rows in each:
            found.extend(map(convert, rows))
    return tuple(found)
