"""Opens and closes sessions."""

from collections.abc import Sequence

from atoll.core.model.errors import ErrorCode, FailedPrecondition, StaleSession
from atoll.core.model.messages import Decision, DecisionKind
from atoll.dispatch.usecases.desk import LogDesk
from atoll.dispatch.usecases.lane import Lane
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.observer import RepairCause
from atoll.dispatch.usecases.outbox import Outbox, Welcome
from atoll.dispatch.usecases.session import Session, Stock
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.store.dispatch import DispatchStore, SessionClaim, SessionRow


class Sessions:
    """The beginning and the end of sessions on this replica."""

    def __init__(self, store: DispatchStore, table: SessionTable, *, limits: Limits) -> None:
        self._store = store
        self._table = table
        self._limits = limits

    async def open(self, claim: SessionClaim) -> Session:
        """Take the cluster's session; it welcomes its agent and then gets decisions.

        Raises FailedPrecondition (ALREADY_HELD, CLUSTER_RETIRED), StaleSession, or Unavailable.
        """
        self._table.admit()
        row = await self._store.open_session(claim)
        live = await self._snapshot(row) if row.from_snapshot else []
        session = self._session(row, claim)
        session.outbox.welcome(_welcome(row, live))
        self._table.enter(session)
        if session.lane.head > session.lane.read:
            self._table.want_repair(session, RepairCause.OPEN)
        return session

    async def goodbye(self, session: Session) -> None:
        """The agent ends in order: another may take over at once."""
        await self._store.close_session(session.cluster, session.epoch)
        self._table.leave(session)

    def lost(self, session: Session) -> None:
        """The stream is gone; the lease stands, for the agent may be back at once."""
        self._table.leave(session)

    async def _snapshot(self, row: SessionRow) -> list[Decision]:
        cluster = row.cluster
        # The snapshot is a push: what it hands over must never be taken for unsent.
        mark = (cluster.name, cluster.session_epoch, cluster.head_seq)
        if cluster.name not in await self._store.mark_sent([mark]):
            raise StaleSession
        # What the leader took back before that has ended by now.
        live = await self._store.live_in(decision.attempt for decision in row.live)
        return [decision for decision in row.live if decision.attempt in live]

    def _session(self, row: SessionRow, claim: SessionClaim) -> Session:
        cluster = row.cluster
        start = cluster.head_seq if row.from_snapshot else claim.applied_seq
        outbox = Outbox(self._table.want_push)
        return Session(
            cluster=cluster.name,
            epoch=cluster.session_epoch,
            instance=claim.instance,
            lane=Lane(start, head=cluster.head_seq, window=self._limits.window),
            outbox=outbox,
            desk=LogDesk(cluster.name, outbox),
            # Another instance's numbers say nothing about this one's inventory.
            stock=Stock(-1 if row.from_snapshot else cluster.inventory_number),
            state=cluster.state,
        )


def _welcome(row: SessionRow, live: Sequence[Decision]) -> Welcome:
    stops = {decision.attempt for decision in live if decision.kind is DecisionKind.STOP}
    attempts = tuple(dict.fromkeys(decision.attempt for decision in live))
    return Welcome(
        head_seq=row.cluster.head_seq,
        report_seq=row.cluster.report_seq,
        from_snapshot=row.from_snapshot,
        live=attempts,
        stopping=tuple(attempt for attempt in attempts if attempt in stops),
    )


def acknowledge(session: Session, applied_seq: int) -> None:
    """The agent has journalled up to a number; ends the session if it cannot have."""
    if not session.lane.acknowledge(applied_seq):
        session.end(
            FailedPrecondition(
                f"decisions up to {applied_seq} are said to be applied,"
                f" {session.lane.sent} were sent",
                code=ErrorCode.WRONG_STATE,
            )
        )
