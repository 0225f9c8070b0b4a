"""Dispatch's side of the store."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from atoll.adapters.postgres.cluster_rows import (
    CLUSTER_COLUMNS,
    DECISION_COLUMNS,
    cluster_from,
    decision_from,
)
from atoll.adapters.postgres.database import Database
from atoll.adapters.postgres.dispatch_tx import PostgresDispatchTx
from atoll.adapters.postgres.inventories import put_inventory, read_inventory
from atoll.adapters.postgres.rows import spec_from
from atoll.adapters.postgres.sessions import answer_claim
from atoll.adapters.postgres.sql import Record
from atoll.core.model.errors import FailedPrecondition
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId
from atoll.core.model.inventory import Cluster, NodeInventory
from atoll.core.model.messages import Decision
from atoll.ports.store.dispatch import (
    Beat,
    DispatchTx,
    InventoryDelta,
    SessionClaim,
    SessionRow,
    StartSpec,
)
from atoll.wire.inventory import decode_node
from atoll.wire.shape import pairs
from atoll.wire.spec import parse_spec

# Locked by name before they are written: an UPDATE by itself has no order.
BEAT: Final = f"""
WITH held AS MATERIALIZED (
    SELECT s.cluster, u.applied, u.lease_s
    FROM sessions s JOIN unnest($1::text[], $2::bigint[], $3::bigint[], $4::double precision[])
        AS u(cluster, epoch, applied, lease_s) ON s.cluster = u.cluster
    WHERE s.session_epoch = u.epoch AND s.lease_until > 0
    ORDER BY s.cluster FOR NO KEY UPDATE OF s
)
UPDATE sessions s SET last_seen = extract(epoch FROM clock_timestamp()),
    lease_until = extract(epoch FROM clock_timestamp()) + held.lease_s,
    acked_seq = greatest(s.acked_seq, held.applied)
FROM held JOIN clusters c ON c.name = held.cluster WHERE s.cluster = held.cluster
RETURNING {CLUSTER_COLUMNS}
"""
MARK_SENT: Final = """
WITH held AS MATERIALIZED (
    SELECT s.cluster, u.number
    FROM sessions s JOIN unnest($1::text[], $2::bigint[], $3::bigint[])
        AS u(cluster, epoch, number) ON s.cluster = u.cluster
    WHERE s.session_epoch = u.epoch ORDER BY s.cluster FOR NO KEY UPDATE OF s
)
UPDATE sessions s SET sent_seq = greatest(s.sent_seq, held.number)
FROM held WHERE s.cluster = held.cluster RETURNING s.cluster
"""
CLOSE: Final = """
WITH closed AS (
    UPDATE sessions SET holder = '', lease_until = 0
    WHERE cluster = $1 AND session_epoch = $2 RETURNING cluster
)
INSERT INTO changes (kind, shard, ids, names)
SELECT 4, c.shard, '{}', ARRAY[c.name] FROM closed JOIN clusters c ON c.name = closed.cluster
"""
DECISIONS: Final = f"""
SELECT {DECISION_COLUMNS} FROM decisions d WHERE d.cluster = $1 AND d.number > $2
ORDER BY d.number LIMIT $3
"""
STARTS: Final = """
SELECT id, tenant, queue, spec, secrets, array_id, array_index, spec_priority FROM jobs
WHERE id = ANY($1::bigint[])
"""
HOLDER: Final = """
SELECT holder FROM sessions
WHERE cluster = $1 AND holder <> '' AND lease_until > extract(epoch FROM clock_timestamp())
"""


class PostgresDispatchStore:
    """Dispatch's side of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[DispatchTx]:
        """One transaction."""
        async with self._database.transaction() as sql:
            yield PostgresDispatchTx(sql)

    async def open_session(self, claim: SessionClaim) -> SessionRow:
        """Register the cluster if new, and take its session.

        Raises FailedPrecondition ALREADY_HELD (another instance's lease is not over),
        CLUSTER_RETIRED, JOIN_REFUSED (a rented cluster, and its token is wrong, was used by another
        agent, or it was given up), or CLUSTER_QUARANTINED: the agent has applied what the store
        does not know.
        """
        async with self._database.transaction() as sql:
            answer = await answer_claim(sql, claim)
        if isinstance(answer, FailedPrecondition):
            raise answer  # after the commit: a quarantine stands
        return answer

    async def close_session(self, cluster: ClusterName, session_epoch: int) -> None:
        """Goodbye: another instance may take over at once. No error when it was taken over."""
        async with self._database.writing() as sql:
            await sql.run(CLOSE, cluster, session_epoch)

    async def beat(self, beats: Sequence[Beat]) -> dict[ClusterName, Cluster]:
        """Commit `last_seen` and `acked_seq`; only sessions that still hold are in the answer."""
        async with self._database.writing() as sql:
            rows = await sql.rows(
                BEAT,
                [beat.cluster for beat in beats],
                [beat.session_epoch for beat in beats],
                [beat.applied_seq for beat in beats],
                [beat.lease_s for beat in beats],
            )
        return {ClusterName(row["name"]): cluster_from(row) for row in rows}

    async def mark_sent(self, sent: Sequence[tuple[ClusterName, int, int]]) -> set[ClusterName]:
        """Commit `sent_seq` (cluster, session epoch, number) before the push; who still holds."""
        if not sent:
            return set()
        async with self._database.writing() as sql:
            rows = await sql.rows(MARK_SENT, *map(list, zip(*sent, strict=True)))
        return {ClusterName(row["cluster"]) for row in rows}

    async def decisions_after(
        self, cluster: ClusterName, number: int, *, limit: int
    ) -> list[Decision]:
        """Decisions above a number, ascending, without a gap."""
        async with self._database.reading() as sql:
            rows = await sql.rows(DECISIONS, cluster, number, limit)
        found = [decision_from(row) for row in rows]
        return [d for place, d in enumerate(found, number + 1) if d.number == place]

    async def start_specs(self, jobs: Iterable[JobId]) -> dict[JobId, StartSpec]:
        """Specs for START decisions, with secrets."""
        async with self._database.reading() as sql:
            rows = await sql.rows(STARTS, list(jobs))
        return {JobId(row["id"]): _start_spec(row) for row in rows}

    async def live_in(self, attempts: Iterable[AttemptId]) -> set[AttemptId]:
        """Those of the attempts that have not ended."""
        async with self._database.reading() as sql:
            rows = await sql.rows(
                "SELECT id FROM attempts WHERE id = ANY($1::bigint[]) AND live", list(attempts)
            )
        return {AttemptId(row["id"]) for row in rows}

    async def put_inventory(self, delta: InventoryDelta) -> bool:
        """Write nodes; False when the session was taken over. Unchanged nodes cost nothing."""
        async with self._database.transaction() as sql:
            return await put_inventory(sql, delta)

    async def inventory(self, cluster: ClusterName) -> dict[str, NodeInventory]:
        """Nodes as the store has them, for the hash."""
        async with self._database.reading() as sql:
            rows = await read_inventory(sql, cluster)
        return {row["name"]: decode_node(row["inventory"]) for row in rows}

    async def node_addresses(self, nodes: Iterable[NodeId]) -> Mapping[NodeId, str]:
        """Where gang members are reached; a node without an address is reached by its name."""
        async with self._database.reading() as sql:
            rows = await sql.rows(
                "SELECT id, name, inventory FROM nodes WHERE id = ANY($1::bigint[])", list(nodes)
            )
        return {
            NodeId(row["id"]): decode_node(row["inventory"]).address or row["name"] for row in rows
        }

    async def address_of(self, cluster: ClusterName) -> str | None:
        """Address of the dispatch replica that holds a cluster's session."""
        async with self._database.reading() as sql:
            holder = await sql.value(HOLDER, cluster)
        return None if holder is None else str(holder)


def _start_spec(row: Record) -> StartSpec:
    spec = spec_from(row)
    if row["secrets"] is not None:
        spec = replace(spec, secrets=pairs(parse_spec(row["secrets"]).secrets))
    return StartSpec(spec, queue=row["queue"], tenant=row["tenant"])
