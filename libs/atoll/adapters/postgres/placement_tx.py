"""A fenced transaction of placement."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from atoll.adapters.postgres.burst_rows import WANTS, encoded
from atoll.adapters.postgres.cluster_rows import (
    ALLOCATION_INSERTED,
    CLUSTERS,
    DECISION_INSERTED,
    allocation_values,
    cluster_from,
    decision_values,
)
from atoll.adapters.postgres.live import NOW, LiveRowsTx
from atoll.adapters.postgres.rows import ATTEMPT_INSERTED, attempt_fixed, attempt_mutable
from atoll.core.model.burst_wants import Want
from atoll.core.model.errors import ErrorCode, FailedPrecondition, StaleEpoch
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, ShardId
from atoll.core.model.inventory import Avoidance, Cluster, ClusterState
from atoll.core.model.job import Attempt
from atoll.core.model.messages import Decision
from atoll.core.model.plan import GangPlacement, Nomination
from atoll.ports.store.common import Allocation, Fence
from atoll.wire.placement import encode_tasks

FENCE: Final = f"""
UPDATE shards SET commit_seq = commit_seq + 1
WHERE id = $1 AND epoch_generation = $2 AND epoch_revision = $3 AND commit_seq = $4
    AND booking_rev = $5
RETURNING {NOW}
"""
# Locked by id before they are written: an UPDATE by itself has no order.
PLACE: Final = """
WITH held AS MATERIALIZED (
    SELECT h.id, u.revision, u.attempt, u.cluster
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])
        AS u(id, revision, attempt, cluster) JOIN jobs h ON h.id = u.id
    ORDER BY h.id FOR NO KEY UPDATE OF h
)
UPDATE jobs j SET state = 'ASSIGNED', attempt = u.attempt, attempts = (u.attempt & 65535)::integer,
    cluster = u.cluster, placed_at = extract(epoch FROM now()), accepted_at = 0, started_at = 0,
    exit_code = NULL, revision = j.revision + 1
FROM held u
WHERE j.id = u.id AND j.state = 'QUEUED' AND j.wish = 'RUN' AND j.revision = u.revision
RETURNING j.id
"""
RAISE_HEADS: Final = """
UPDATE clusters c SET head_seq = u.last, revision = c.revision + 1
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS u(name, first, last)
WHERE c.name = u.name AND c.head_seq = u.first - 1
"""
VOID: Final = """
UPDATE decisions SET kind = 'VOID', payload = '' WHERE attempt = ANY($1::bigint[])
    AND kind = 'START'
"""
PUT_AVOIDANCES: Final = """
INSERT INTO avoidances (cluster, node, shape_key, rejections, until)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::integer[], $5::double precision[])
ON CONFLICT (cluster, node, shape_key)
DO UPDATE SET rejections = excluded.rejections, until = excluded.until
"""
DROP_AVOIDANCES: Final = "DELETE FROM avoidances WHERE until < extract(epoch FROM now()) - $1"
KEPT_AFTER_S: Final = 3600.0
"""A next leader goes on counting from rows that are over."""
PUT_NOMINATION: Final = """
INSERT INTO nominations (job, shard, cluster, queue, tasks, until, victims)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (job) DO UPDATE SET shard = excluded.shard, cluster = excluded.cluster,
    queue = excluded.queue, tasks = excluded.tasks, until = excluded.until,
    victims = excluded.victims
"""
PUT_FORECASTS: Final = """
INSERT INTO forecasts (shard, record) VALUES ($1, $2)
ON CONFLICT (shard) DO UPDATE SET record = $2
"""
PUT_WANTS: Final = """
INSERT INTO burst_wants (shard, wants) VALUES ($1, $2)
ON CONFLICT (shard) DO UPDATE SET wants = $2
"""
DROP_NOMINATIONS: Final = "DELETE FROM nominations WHERE job = ANY($1::bigint[])"
SUSPECT: Final = """
UPDATE nodes n SET suspect_since = greatest(n.suspect_since, u.number), revision = n.revision + 1
FROM unnest($1::bigint[], $2::bigint[]) AS u(id, number) WHERE n.id = u.id
"""
FORGET: Final = (
    "UPDATE clusters SET state = 'RETIRED', revision = revision + 1 WHERE name = $1",
    """UPDATE sessions SET session_epoch = session_epoch + 1, holder = '', lease_until = 0
        WHERE cluster = $1""",
    """UPDATE decisions d SET kind = 'VOID', payload = '' FROM sessions s
        WHERE d.cluster = $1 AND s.cluster = $1 AND d.number > s.sent_seq AND d.kind <> 'VOID'""",
    "UPDATE nodes SET present = false, revision = revision + 1 WHERE cluster = $1 AND present",
)


class PostgresPlacementTx(LiveRowsTx):
    """One fenced transaction of placement."""

    async def require(self, fence: Fence) -> Fence:
        """Pass the fence, or raise StaleEpoch. Returns the fence for the next commit."""
        self._now = await self._sql.value(
            FENCE, fence.shard, fence.epoch.generation, fence.epoch.revision, fence.commit_seq,
            fence.booking_rev,
        )  # fmt: skip
        if self._now is None:
            raise StaleEpoch(f"shard {fence.shard} is no longer at {fence}")
        return Fence(fence.shard, fence.epoch, fence.commit_seq + 1, fence.booking_rev)

    async def lock_clusters(self, names: Iterable[ClusterName]) -> dict[ClusterName, Cluster]:
        """Lock clusters (not their sessions' counters) by ascending name."""
        return await self._locked(names, "c")

    async def lock_sessions(self, names: Iterable[ClusterName]) -> dict[ClusterName, Cluster]:
        """Lock clusters and their sessions' counters: `sent_seq` cannot move any more."""
        wanted = list(names)
        await self._locked(wanted, "c")
        return await self._locked(wanted, "s")

    async def clusters_of(self, attempts: Iterable[AttemptId]) -> dict[AttemptId, ClusterName]:
        """Where attempts are, unlocked."""
        rows = await self._sql.rows(
            "SELECT id, cluster FROM attempts WHERE id = ANY($1::bigint[])", list(attempts)
        )
        return {AttemptId(row["id"]): ClusterName(row["cluster"]) for row in rows}

    async def place_jobs(self, placements: Sequence[GangPlacement]) -> set[JobId]:
        """Compare-and-set: QUEUED, wish RUN, unchanged revision -> ASSIGNED. Who won."""
        if not placements:
            return set()
        rows = await self._sql.rows(
            PLACE,
            [p.job for p in placements],
            [p.revision for p in placements],
            [p.attempt for p in placements],
            [p.cluster for p in placements],
        )
        return {JobId(row["id"]) for row in rows}

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Insert new attempts."""
        if attempts:
            values = ((*attempt_fixed(a), *attempt_mutable(a)) for a in attempts)
            await self._sql.copy("attempts", ATTEMPT_INSERTED, values)

    async def add_allocations(self, allocations: Sequence[Allocation]) -> None:
        """Insert; a second owner of a whole device violates an index and raises PLAN_INVALID."""
        if allocations:
            await self._sql.copy(
                "allocations", ALLOCATION_INSERTED, map(allocation_values, allocations)
            )

    async def add_decisions(self, decisions: Sequence[Decision]) -> None:
        """Insert, and raise each cluster's `head_seq`; numbers that are not dense are refused."""
        if not decisions:
            return
        names, firsts, lasts = _dense(decisions)
        if await self._sql.run(RAISE_HEADS, names, firsts, lasts) != len(names):
            raise _not_dense(names)
        await self._sql.copy("decisions", DECISION_INSERTED, map(decision_values, decisions))

    async def void_decisions(self, attempts: Iterable[AttemptId]) -> None:
        """Turn the START decisions of attempts into VOID; their numbers stay."""
        if wanted := list(attempts):
            await self._sql.run(VOID, wanted)

    async def set_cluster_state(self, name: ClusterName, state: ClusterState) -> None:
        """Change what is known of a locked cluster."""
        await self._sql.run(
            "UPDATE clusters SET state = $2, revision = revision + 1 WHERE name = $1", name, state
        )

    async def set_silence(self, silent_s: Sequence[tuple[ClusterName, float]]) -> None:
        """Persist the silence counted so far."""
        if silent_s:
            await self._sql.run(
                "UPDATE clusters c SET silent_s = u.s, revision = c.revision + 1"
                " FROM unnest($1::text[], $2::double precision[]) AS u(name, s)"
                " WHERE c.name = u.name",
                [name for name, _ in silent_s],
                [seconds for _, seconds in silent_s],
            )

    async def put_avoidances(self, avoidances: Sequence[Avoidance]) -> None:
        """Insert or replace by (cluster, node, shape_key); those long over are removed."""
        if avoidances:
            await self._sql.run(
                PUT_AVOIDANCES,
                [a.cluster for a in avoidances],
                [-1 if a.node is None else a.node for a in avoidances],
                [a.shape_key for a in avoidances],
                [a.rejections for a in avoidances],
                [a.until for a in avoidances],
            )
        await self._sql.run(DROP_AVOIDANCES, KEPT_AFTER_S)

    async def put_nominations(self, shard: ShardId, nominations: Sequence[Nomination]) -> None:
        """Insert or replace by job what is held for jobs."""
        for each in nominations:
            await self._sql.run(
                PUT_NOMINATION, each.job, shard, each.cluster, each.queue,
                encode_tasks(each.tasks), each.until, list(each.victims),
            )  # fmt: skip

    async def end_nominations(self, jobs: Iterable[JobId]) -> None:
        """Delete what is held for jobs; one that has nothing is no error."""
        if wanted := list(jobs):
            await self._sql.run(DROP_NOMINATIONS, wanted)

    async def put_forecasts(self, shard: ShardId, record: str) -> None:
        """Replace the record of how forecasts held."""
        await self._sql.run(PUT_FORECASTS, shard, record)

    async def put_wants(self, shard: ShardId, wants: Sequence[Want]) -> None:
        """Replace what the shard's queued jobs want of rented capacity, in the queue's order."""
        await self._sql.run(PUT_WANTS, shard, encoded(WANTS, tuple(wants)))

    async def suspect_nodes(self, nodes: Sequence[tuple[NodeId, int]]) -> None:
        """Mark (node, inventory number at which it refused)."""
        if nodes:
            ids = [node for node, _ in nodes]
            await self._sql.rows(
                "SELECT id FROM nodes WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE",
                ids,
            )
            await self._sql.run(SUSPECT, ids, [number for _, number in nodes])

    async def forget_cluster(self, name: ClusterName) -> list[AttemptId]:
        """Retire a locked cluster, void what it was not sent; its live attempts."""
        for statement in FORGET:
            await self._sql.run(statement, name)
        rows = await self._sql.rows(
            "SELECT id FROM attempts WHERE cluster = $1 AND live ORDER BY id", name
        )
        return [AttemptId(row["id"]) for row in rows]

    async def _locked(self, names: Iterable[ClusterName], table: str) -> dict[ClusterName, Cluster]:
        rows = await self._sql.rows(
            f"{CLUSTERS} WHERE c.name = ANY($1::text[])"
            f" ORDER BY c.name FOR NO KEY UPDATE OF {table}",
            list(names),
        )
        return {ClusterName(row["name"]): cluster_from(row) for row in rows}


def _dense(decisions: Sequence[Decision]) -> tuple[list[ClusterName], list[int], list[int]]:
    numbers: dict[ClusterName, list[int]] = defaultdict(list)
    for decision in decisions:
        numbers[decision.cluster].append(decision.number)
    for name, found in numbers.items():
        if sorted(found) != list(range(min(found), max(found) + 1)):
            raise _not_dense([name])
    names = sorted(numbers)
    return names, [min(numbers[n]) for n in names], [max(numbers[n]) for n in names]


def _not_dense(names: Sequence[ClusterName]) -> FailedPrecondition:
    return FailedPrecondition(
        f"decisions for {', '.join(names)} do not go on from the last number",
        code=ErrorCode.PLAN_INVALID,
    )
