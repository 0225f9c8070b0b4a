"""Sessions of agents: who holds them, and since when nobody does."""

import json
from typing import Final

from atoll.adapters.postgres.burst_rows import INSTANCE_COLUMNS, instance_from
from atoll.adapters.postgres.cluster_rows import (
    CLUSTERS,
    DECISION_COLUMNS,
    cluster_from,
    decision_from,
)
from atoll.adapters.postgres.live import add_changes
from atoll.adapters.postgres.sql import Record, Sql
from atoll.core.model.burst_join import is_rented, join_refusal, unknown
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import ClusterState
from atoll.core.model.messages import ChangeKind
from atoll.ports.store.dispatch import SessionClaim, SessionRow

RENTED: Final = f"""
SELECT {INSTANCE_COLUMNS}, i.joined_by, i.join_hash FROM burst_instances i WHERE i.cluster = $1
FOR NO KEY UPDATE
"""
# Its token is its agent's own from now on.
JOIN: Final = "UPDATE burst_instances SET joined_by = $2 WHERE id = $1"
ACTIVATE: Final = """
UPDATE clusters SET state = 'ACTIVE', revision = revision + 1
WHERE name = $1 AND state = 'BOOTING'
"""
REGISTER: Final = (
    "INSERT INTO clusters (name) VALUES ($1) ON CONFLICT (name) DO NOTHING",
    "INSERT INTO sessions (cluster) VALUES ($1) ON CONFLICT (cluster) DO NOTHING",
)
LOCK: Final = (
    "SELECT 1 FROM clusters WHERE name = $1 FOR NO KEY UPDATE",
    "SELECT 1 FROM sessions WHERE cluster = $1 FOR NO KEY UPDATE",
)
READ: Final = f"""
WITH clock AS MATERIALIZED (
    SELECT extract(epoch FROM clock_timestamp())::double precision AS now
)
SELECT k.*, (SELECT now FROM clock) AS now FROM ({CLUSTERS}) AS k WHERE k.name = $1
"""
QUARANTINE: Final = (
    "UPDATE clusters SET state = 'QUARANTINED', revision = revision + 1 WHERE name = $1"
)
DESCRIBE: Final = """
UPDATE clusters SET backend = $2, can_guard = $3, levels = $4, labels = $5::jsonb,
    revision = revision + 1
WHERE name = $1
"""
TAKE: Final = """
UPDATE sessions SET session_epoch = session_epoch + 1, instance = $2, holder = $3,
    last_seen = extract(epoch FROM clock_timestamp()),
    lease_until = extract(epoch FROM clock_timestamp()) + $4
WHERE cluster = $1
"""
# Another instance counts its reports and inventories from the beginning.
BEGIN_ANEW: Final = (
    "UPDATE sessions SET report_seq = 0, inventory_number = 0 WHERE cluster = $1",
    "SELECT 1 FROM nodes WHERE cluster = $1 ORDER BY id FOR NO KEY UPDATE",
    """UPDATE nodes SET inventory_number = 0, suspect_since = least(suspect_since, 0),
        revision = revision + 1
    WHERE cluster = $1 AND inventory_number <> 0""",
)
# The decisions of what is alive, STOP included, as if they were sent again.
LIVE_DECISIONS: Final = f"""
SELECT {DECISION_COLUMNS} FROM attempts a JOIN decisions d ON d.attempt = a.id
WHERE a.cluster = $1 AND a.live AND d.kind <> 'VOID' ORDER BY d.number
"""


async def answer_claim(sql: Sql, claim: SessionClaim) -> SessionRow | FailedPrecondition:
    """The session, taken, or why it is refused; what was written stands either way."""
    rented = await sql.row(RENTED, claim.cluster) if is_rented(claim.cluster) else None
    if rented is None and is_rented(claim.cluster):
        return unknown(claim.cluster)
    row = await _locked(sql, claim.cluster)
    refusal = await _refusal(sql, row, claim, rented=rented)
    if refusal is not None:
        return refusal
    if rented is not None:
        await sql.run(JOIN, rented["id"], claim.instance)
        await sql.run(ACTIVATE, claim.cluster)
    await _take(sql, row, claim)
    anew = claim.fresh_journal or row["instance"] != claim.instance
    live = await sql.rows(LIVE_DECISIONS, claim.cluster) if anew else []
    taken = await sql.row(READ, claim.cluster)
    assert taken is not None
    return SessionRow(cluster_from(taken), anew, live=tuple(decision_from(d) for d in live))


async def _refusal(
    sql: Sql, row: Record, claim: SessionClaim, *, rented: Record | None
) -> FailedPrecondition | None:
    refusal = _held_or_retired(row, claim)
    if refusal is None and rented is not None:
        refusal = _not_joined(rented, claim)
    if refusal is None and _is_ahead(row, claim):
        refusal = await _quarantined(sql, row, claim)
    return refusal


async def _locked(sql: Sql, name: ClusterName) -> Record:
    for statement in (*REGISTER, *LOCK):
        await sql.run(statement, name)
    row = await sql.row(READ, name)
    assert row is not None
    return row


def _held_or_retired(row: Record, claim: SessionClaim) -> FailedPrecondition | None:
    if row["state"] == ClusterState.RETIRED:
        return FailedPrecondition(
            f"cluster {claim.cluster} was forgotten; its name is never used again",
            code=ErrorCode.CLUSTER_RETIRED,
        )
    left_s = row["lease_until"] - row["now"]
    if row["instance"] in ("", claim.instance) or left_s <= 0:
        return None
    return FailedPrecondition(
        f"another agent holds cluster {claim.cluster}",
        code=ErrorCode.ALREADY_HELD,
        metadata={"holder": row["holder"], "lease_left_s": f"{left_s:.3f}"},
    )


def _not_joined(rented: Record, claim: SessionClaim) -> FailedPrecondition | None:
    return join_refusal(
        instance_from(rented),
        agent=claim.instance,
        joined_by=rented["joined_by"],
        shown=claim.join_hash,
        expected=rented["join_hash"],
    )


def _is_ahead(row: Record, claim: SessionClaim) -> bool:
    """The agent knows decisions that the store does not: the store is an old copy."""
    return bool(claim.applied_seq > row["head_seq"] or row["state"] == ClusterState.QUARANTINED)


async def _quarantined(sql: Sql, row: Record, claim: SessionClaim) -> FailedPrecondition:
    """No new work and no session until somebody has looked."""
    if row["state"] != ClusterState.QUARANTINED:
        await sql.run(QUARANTINE, claim.cluster)
        await _note(sql, claim.cluster)
    return FailedPrecondition(
        f"cluster {claim.cluster} has applied decisions up to {claim.applied_seq}, the store knows"
        f" {row['head_seq']}: it is quarantined",
        code=ErrorCode.CLUSTER_QUARANTINED,
    )


async def _take(sql: Sql, row: Record, claim: SessionClaim) -> None:
    described = (
        claim.backend, claim.can_guard, list(claim.levels), json.dumps(dict(claim.labels)),
    )  # fmt: skip
    known = (row["backend"], row["can_guard"], row["levels"], row["labels"])
    if _comparable(described) != _comparable(known):
        await sql.run(DESCRIBE, claim.cluster, *described)
    if row["instance"] != claim.instance:
        for statement in BEGIN_ANEW:
            await sql.run(statement, claim.cluster)
    await sql.run(TAKE, claim.cluster, claim.instance, claim.holder, claim.lease_s)
    await _note(sql, claim.cluster)


async def _note(sql: Sql, name: ClusterName) -> None:
    await sql.run(add_changes((ChangeKind.CLUSTERS,)), [name], None)


def _comparable(described: tuple[object, ...]) -> tuple[object, ...]:
    *plain, labels = described
    return (*plain, json.loads(str(labels)))
