"""Sessions of agents in memory: who holds them, and since when nobody does."""

from dataclasses import replace

from atoll.adapters.memory.burst_rows import InstanceRow
from atoll.adapters.memory.store_rows import Rows
from atoll.core.model.burst_join import is_rented, join_refusal, unknown
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT
from atoll.core.model.messages import ChangeKind, Decision, DecisionKind
from atoll.ports.store.dispatch import SessionClaim, SessionRow


def answer_claim(rows: Rows, claim: SessionClaim, *, now: float) -> SessionRow | FailedPrecondition:
    """The session, taken, or why it is refused; what was written stands either way."""
    rented = _rented(rows, claim.cluster)
    if rented is None and is_rented(claim.cluster):
        return unknown(claim.cluster)
    cluster = rows.clusters.get(claim.cluster)
    if cluster is None:
        cluster = Cluster(claim.cluster)
        rows.clusters.put(claim.cluster, cluster)
    refusal = _held_or_retired(cluster, claim, now=now)
    if refusal is None and rented is not None:
        refusal = _not_joined(rented, claim)
    refusal = refusal or _quarantined(rows, cluster, claim)
    if refusal is not None:
        return refusal
    if rented is not None:
        # Its token is its agent's own from now on.
        joined = replace(rented, joined_by=claim.instance)
        rows.burst.instances.put(rented.instance.id, joined)
    anew = cluster.agent_instance != claim.instance
    taken = _taken(cluster, claim, now=now)
    if anew:
        taken = replace(taken, report_seq=0, inventory_number=0)
        _begin_inventories_anew(rows, cluster)
    rows.clusters.put(claim.cluster, taken)
    note_cluster(rows, claim)
    from_snapshot = anew or claim.fresh_journal
    return SessionRow(taken, from_snapshot, live=_live(rows, cluster) if from_snapshot else ())


def note_cluster(rows: Rows, claim: SessionClaim) -> None:
    """Say that a cluster changed."""
    rows.changes.append((ChangeKind.CLUSTERS, frozenset({claim.cluster}), 0))


def _held_or_retired(
    cluster: Cluster, claim: SessionClaim, *, now: float
) -> FailedPrecondition | None:
    if cluster.state is ClusterState.RETIRED:
        return FailedPrecondition(
            f"cluster {claim.cluster} was forgotten; its name is never used again",
            code=ErrorCode.CLUSTER_RETIRED,
        )
    left_s = cluster.lease_until - now
    if cluster.agent_instance in ("", claim.instance) or left_s <= 0:
        return None
    return FailedPrecondition(
        f"another agent holds cluster {claim.cluster}",
        code=ErrorCode.ALREADY_HELD,
        metadata={"holder": cluster.holder, "lease_left_s": f"{left_s:.3f}"},
    )


def _rented(rows: Rows, cluster: ClusterName) -> InstanceRow | None:
    every = rows.burst.instances.values() if is_rented(cluster) else ()
    return next((row for row in every if row.instance.cluster == cluster), None)


def _not_joined(row: InstanceRow, claim: SessionClaim) -> FailedPrecondition | None:
    return join_refusal(
        row.instance,
        agent=claim.instance,
        joined_by=row.joined_by,
        shown=claim.join_hash,
        expected=row.join_hash,
    )


def _quarantined(rows: Rows, cluster: Cluster, claim: SessionClaim) -> FailedPrecondition | None:
    quarantined = cluster.state is ClusterState.QUARANTINED
    if claim.applied_seq <= cluster.head_seq and not quarantined:
        return None
    if not quarantined:
        state = ClusterState.QUARANTINED
        rows.clusters.put(
            claim.cluster, replace(cluster, state=state, revision=cluster.revision + 1)
        )
        note_cluster(rows, claim)
    return FailedPrecondition(
        f"cluster {claim.cluster} has applied decisions up to {claim.applied_seq}, the store knows"
        f" {cluster.head_seq}: it is quarantined",
        code=ErrorCode.CLUSTER_QUARANTINED,
    )


def _taken(cluster: Cluster, claim: SessionClaim, *, now: float) -> Cluster:
    booting = cluster.state is ClusterState.BOOTING
    described = replace(
        cluster,
        state=ClusterState.ACTIVE if booting else cluster.state,
        backend=claim.backend,
        can_guard=claim.can_guard,
        levels=claim.levels,
        labels=tuple(sorted(claim.labels)),
    )
    return replace(
        described,
        session_epoch=cluster.session_epoch + 1,
        agent_instance=claim.instance,
        holder=claim.holder,
        lease_until=now + claim.lease_s,
        last_seen=now,
        revision=cluster.revision + (described != cluster),
    )


def _begin_inventories_anew(rows: Rows, cluster: Cluster) -> None:
    for number, node in list(rows.nodes.items()):
        if node.cluster == cluster.name and node.inventory_number:
            anew = replace(
                node,
                inventory_number=0,
                suspect_since=min(node.suspect_since, 0),
                revision=node.revision + 1,
            )
            rows.nodes.put(number, anew)


def _live(rows: Rows, cluster: Cluster) -> tuple[Decision, ...]:
    live = {
        attempt.id
        for attempt in rows.attempts.values()
        if attempt.cluster == cluster.name and attempt.state not in TERMINAL_ATTEMPT
    }
    found = (d for d, _ in rows.decisions.values() if d.attempt in live)
    wanted = (d for d in found if d.kind is not DecisionKind.VOID)
    return tuple(sorted(wanted, key=lambda decision: decision.number))
