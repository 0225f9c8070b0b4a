"""Opens and closes sessions."""

from atoll.core.model.errors import ErrorCode, FailedPrecondition, StaleSession
from atoll.core.model.messages import DecisionKind
from atoll.dispatch.usecases.desk import LogDesk
from atoll.dispatch.usecases.lane import Lane
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.observer import RepairCause
from atoll.dispatch.usecases.outbox import Outbox, Ready, Welcome
from atoll.dispatch.usecases.ready import Readier
from atoll.dispatch.usecases.session import Session, Stock
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.store.dispatch import DispatchStore, SessionClaim, SessionRow


class Sessions:
    """The beginning and the end of sessions on this replica."""

    def __init__(
        self, store: DispatchStore, table: SessionTable, ready: Readier, *, limits: Limits
    ) -> None:
        self._store = store
        self._table = table
        self._ready = ready
        self._limits = limits

    async def open(self, claim: SessionClaim) -> Session:
        """Take the cluster's session; it welcomes its agent and then gets decisions.

        Raises FailedPrecondition (ALREADY_HELD, CLUSTER_RETIRED), StaleSession, or Unavailable.
        """
        self._table.admit()
        row = await self._store.open_session(claim)
        live = await self._snapshot(row) if row.from_snapshot else ()
        session = self._session(row, claim)
        session.outbox.welcome(
            Welcome(row.cluster.head_seq, row.cluster.report_seq, row.from_snapshot, live)
        )
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

    async def _snapshot(self, row: SessionRow) -> tuple[Ready, ...]:
        cluster = row.cluster
        # The snapshot is a push: what it hands over must never be taken for unsent.
        mark = (cluster.name, cluster.session_epoch, cluster.head_seq)
        if cluster.name not in await self._store.mark_sent([mark]):
            raise StaleSession
        ready = await self._ready(row.live)
        return tuple(item for item in ready if item.decision.kind is not DecisionKind.VOID)

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
