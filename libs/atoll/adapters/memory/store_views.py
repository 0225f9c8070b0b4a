"""The shard as the leader sees it: all of it, or what changed since a cursor."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TypeVar, cast

from atoll.adapters.memory.burst_rows import InstanceRow, all_offers, all_policies
from atoll.adapters.memory.store_events import cursor_at, expired, position
from atoll.adapters.memory.store_rows import GROUND, MemoryDatabase, Refused, Tables
from atoll.core.model.booking import OccurrenceId, Window, marks_of, with_own
from atoll.core.model.burst import ENDED, Rental
from atoll.core.model.burst_join import is_rented
from atoll.core.model.ids import QueueName, ShardId, job_of
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT, AttemptState
from atoll.core.model.messages import ChangeKind
from atoll.core.model.plan import (
    GangRequest,
    PendingJob,
    RunFacts,
    immune_until,
    request_of,
    shape_key,
)
from atoll.core.model.windows import windows_of
from atoll.ports.store.common import Cursor
from atoll.ports.store.placement import AttemptView, BurstGround, JobView, ShardDelta
from atoll.wire.request import CACHED_REQUESTS

K = TypeVar("K", bound=int | str)
V = TypeVar("V")
Keys = dict[ChangeKind, set[int | str]]


def load(database: MemoryDatabase, shard: ShardId, *, now: float) -> ShardDelta:
    """All live rows."""
    tables = database.tables
    clusters = clusters_of(tables, shard)
    ours = {c.name for c in clusters}
    held = {row.node for rows in tables.allocations.values() for row in rows}
    live = (tables.jobs[i] for i in sorted(database.live_jobs))
    return ShardDelta(
        cursor=cursor_at(database, database.seq),
        jobs=tuple(_job_view(job) for job in live if job.shard == shard),
        attempts=tuple(
            _attempt_view(tables, a)
            for _, a in sorted(tables.attempts.items())
            if a.shard == shard and a.state not in TERMINAL_ATTEMPT
        ),
        nodes=tuple(
            n
            for _, n in sorted(tables.nodes.items())
            if n.cluster in ours and (n.present or n.id in held)
        ),
        clusters=tuple(clusters),
        queues=tuple(queue for _, queue in sorted(tables.queues.items())),
        avoidances=tuple(a for a in tables.avoidances.values() if a.cluster in ours),
        nominations=tuple(n for _, (of, n) in sorted(tables.nominations.items()) if of == shard),
        forecasts=tables.forecasts.get(shard, ""),
        windows=_windows(tables, sorted(tables.bookings.occurrences), shard, now=now),
        rentals=_needed_rentals(tables, shard),
        burst=_ground(tables),
    )


def clusters_of(tables: Tables, shard: ShardId) -> list[Cluster]:
    """By name, without those of rented machines that were forgotten."""
    every = (c for _, c in sorted(tables.clusters.items()) if c.shard == shard)
    return [c for c in every if c.state is not ClusterState.RETIRED or not is_rented(c.name)]


def past_attempts(database: MemoryDatabase, shard: ShardId, *, most: int) -> list[AttemptView]:
    """Attempts that came to their own end, of the latest jobs, the latest first."""
    tables = database.tables
    ended = (a for _, a in sorted(tables.attempts.items(), reverse=True) if a.shard == shard)
    finished = (a for a in ended if a.state is AttemptState.FINISHED)
    return [_attempt_view(tables, attempt) for attempt in islice(finished, most)]


def catch_up(
    database: MemoryDatabase, shard: ShardId, cursor: Cursor, *, writer: int, now: float
) -> ShardDelta:
    """Rows changed since a cursor, but for those that `writer` changed."""
    keys = changed_since(database, cursor, writer=writer)
    tables = database.tables
    jobs = _rows(tables.jobs, keys[ChangeKind.JOBS])
    attempts = _rows(tables.attempts, keys[ChangeKind.ATTEMPTS])
    nodes = _rows(tables.nodes, keys[ChangeKind.NODES])
    clusters = _rows(tables.clusters, keys[ChangeKind.CLUSTERS])
    queues = _rows(tables.queues, keys[ChangeKind.QUEUES])
    booked = [OccurrenceId(int(key)) for key in sorted(keys[ChangeKind.BOOKINGS], key=int)]
    windows = _windows(tables, booked, shard, now=now)
    here = {window.id for window in windows}
    return ShardDelta(
        cursor=cursor_at(database, database.seq),
        jobs=tuple(_job_view(j) for j in jobs if j.shard == shard),
        attempts=tuple(_attempt_view(tables, a) for a in attempts if a.shard == shard),
        nodes=tuple(n for n in nodes if tables.clusters[n.cluster].shard == shard),
        clusters=tuple(c for c in clusters if c.shard == shard),
        queues=tuple(queues),
        queues_gone=tuple(
            QueueName(str(name))
            for name in sorted(keys[ChangeKind.QUEUES], key=str)
            if name not in tables.queues
        ),
        windows=windows,
        windows_gone=tuple(each for each in booked if each not in here),
        rentals=_rentals(_rows(tables.burst.instances, keys[ChangeKind.INSTANCES]), shard),
        burst=_ground(tables) if GROUND in keys[ChangeKind.INSTANCES] else None,
    )


def changed_since(database: MemoryDatabase, cursor: Cursor, *, writer: int = 0) -> Keys:
    """Keys of rows changed since, but for those that `writer` changed; raises CURSOR_EXPIRED."""
    seq, _ = position(database, cursor)
    if seq < database.changes_lost:
        raise expired("changes after it were dropped")
    keys: Keys = defaultdict(set)
    start = bisect_right(database.changes, seq, key=lambda logged: logged.seq)
    for logged in database.changes[start:]:
        if logged.writer != writer or not writer:
            keys[logged.kind].update(logged.keys)
    return keys


def _needed_rentals(tables: Tables, shard: ShardId) -> tuple[Rental, ...]:
    """Those that are not ended, and those whose clusters are still to be forgotten."""
    rows = (row for _, row in sorted(tables.burst.instances.items()))
    needed = (
        row
        for row in rows
        if row.instance.state not in ENDED
        or tables.clusters[row.instance.cluster].state is not ClusterState.RETIRED
    )
    return _rentals(needed, shard)


def _rentals(rows: Iterable[InstanceRow], shard: ShardId) -> tuple[Rental, ...]:
    return tuple(row.rental for row in rows if row.shard == shard)


def _ground(tables: Tables) -> BurstGround:
    burst = tables.burst
    return BurstGround(tuple(all_offers(burst.offers)), tuple(all_policies(burst.policies)))


def _windows(
    tables: Tables, ids: Sequence[OccurrenceId], shard: ShardId, *, now: float
) -> tuple[Window, ...]:
    bookings = tables.bookings
    found = [bookings.occurrences[i] for i in ids if i in bookings.occurrences]
    every = (
        window
        for each in found
        for window in windows_of(bookings.reservations[each.reservation], each, now=now)
    )
    return tuple(w for w in every if (c := tables.clusters.get(w.cluster)) and c.shard == shard)


def _rows(table: Mapping[K, V], keys: set[int | str]) -> list[V]:
    found = (table.get(cast("K", key)) for key in sorted(cast("set[int]", keys)))
    return [row for row in found if row is not None]


def _job_view(job: Job) -> JobView:
    pending = PendingJob(
        id=job.id,
        revision=job.revision,
        queue=job.queue,
        priority=job.priority,
        submitted_at=job.submitted_at,
        request=_same(request_of(job.spec)),
        attempts=job.attempts,
        begin_at=job.spec.begin_at,
        depends_on=job.spec.depends_on,
        trace=job.trace,
        deadline_at=job.spec.deadline_at,
        guaranteed=job.guaranteed,
        preemptions=job.preemptions,
    )
    return JobView(
        pending,
        job.state,
        job.wish,
        attempt=job.attempt,
        placed_at=job.placed_at,
        accepted_at=job.accepted_at,
        marks=with_own(marks_of(job.principal, job.spec.labels), job.id),
    )


@lru_cache(maxsize=CACHED_REQUESTS)
def _same(request: GangRequest) -> GangRequest:
    """Equal requests are one object, as from the other store."""
    return request


def _attempt_view(tables: Tables, attempt: Attempt) -> AttemptView:
    job = tables.jobs[job_of(attempt.id)]
    request = request_of(job.spec)
    refused = tables.refusals.get(attempt.id, Refused())
    return AttemptView(
        attempt=attempt,
        queue=job.queue,
        job_wish=job.wish,
        requeue_on_lost=request.needs_guard,
        shape_key=shape_key(request),
        suspects=refused.suspects,
        rejected_inventory=refused.inventory_number,
        run=RunFacts(
            job=job.id,
            priority=job.priority,
            submitted_at=job.submitted_at,
            started_at=attempt.created_at,
            terms=request.terms,
            deadline_at=job.spec.deadline_at,
            guaranteed=job.guaranteed,
            preemptions=job.preemptions,
            immune_until=immune_until(
                request.terms, job.preemptions, started_at=attempt.created_at
            ),
            apart=request.anti_affinity,
            reservation=request.reservation,
            marks=with_own(marks_of(job.principal, job.spec.labels), job.id),
        ),
    )
