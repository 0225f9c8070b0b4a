"""Commits heartbeats of many sessions, and answers only those that are committed."""

from collections.abc import Iterable
from dataclasses import dataclass

from atoll.core.model.errors import ErrorCode, FailedPrecondition, StaleSession
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.dispatch.usecases.observer import BatchKind, Observer
from atoll.dispatch.usecases.session import Session
from atoll.ports.store.dispatch import Beat, DispatchStore


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat that waits to be committed."""

    session: Session
    number: int


class Beats:
    """Heartbeats: `last_seen`, `acked_seq`, and the head for the way back."""

    def __init__(self, store: DispatchStore, *, lease_s: float, observer: Observer) -> None:
        self._store = store
        self._lease_s = lease_s
        self._observer = observer

    async def commit(self, beats: Iterable[Heartbeat]) -> None:
        """Commit one of each session, then answer. Raises Unavailable: none was answered."""
        newest = {beat.session: beat for beat in beats if beat.session.open}
        if not newest:
            return
        applied = {session: session.lane.acked for session in newest}
        seen = await self._store.beat([
            Beat(session.cluster, session.epoch, number, self._lease_s)
            for session, number in applied.items()
        ])
        for session, beat in newest.items():
            _answer(beat, seen.get(session.cluster), applied=applied[session])
        self._observer.batch(BatchKind.BEATS, len(newest))


def _answer(beat: Heartbeat, cluster: Cluster | None, *, applied: int) -> None:
    session = beat.session
    if cluster is None or cluster.session_epoch != session.epoch:
        session.end(StaleSession())
    elif cluster.state is ClusterState.RETIRED:
        session.end(FailedPrecondition("the cluster is retired", code=ErrorCode.CLUSTER_RETIRED))
    elif cluster.head_seq < applied:
        session.end(_ahead(applied, cluster.head_seq))
    else:
        session.saw(cluster)
        session.outbox.beat_ack(beat.number, cluster.head_seq)


def _ahead(applied: int, head: int) -> FailedPrecondition:
    """The store is an older copy than the agent; opening anew quarantines the cluster."""
    return FailedPrecondition(
        f"decisions up to {applied} are applied, the store knows {head}",
        code=ErrorCode.WRONG_STATE,
    )
