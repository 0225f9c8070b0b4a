"""Reads decisions: from Redis for all sessions at once, from the store where Redis falls short."""

from collections.abc import Callable

from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import ClusterName
from atoll.core.model.messages import Decision
from atoll.dispatch.usecases.lane import Offer
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.observer import Observer, RepairCause
from atoll.dispatch.usecases.session import Session
from atoll.dispatch.usecases.table import Repair, SessionTable
from atoll.ports.clock import Clock
from atoll.ports.store.dispatch import DispatchStore
from atoll.ports.streams import DecisionStream, StreamEntry, StreamUnavailable

Decode = Callable[[bytes, ClusterName], Decision]
"""Raises ValueError when the bytes are no decision."""


class Follower:
    """One reader of the streams of all sessions' clusters."""

    def __init__(
        self, stream: DecisionStream, table: SessionTable, *, decode: Decode, clock: Clock
    ) -> None:
        self._stream = stream
        self._table = table
        self._decode = decode
        self._clock = clock
        self._last_entry = clock.monotonic()

    def idle_s(self) -> float:
        """Since Redis brought something."""
        return self._clock.monotonic() - self._last_entry

    async def read(self, wait_ms: int) -> bool:
        """Read once; False when no session could take anything. Raises StreamUnavailable."""
        positions: dict[str, int] = {s.cluster: s.lane.read for s in self._table if _listens(s)}
        if not positions:
            return False
        for entry in await self._stream.read(positions, wait_ms):
            self._last_entry = self._clock.monotonic()
            session = self._table.get(ClusterName(entry.cluster))
            if session is not None and not session.repairing:
                self._take(session, entry)
        return True

    def _take(self, session: Session, entry: StreamEntry) -> None:
        decision = self._decoded(session, entry)
        if decision is None:
            self._table.want_repair(session, RepairCause.POISON, upto=entry.number)
            return
        match session.lane.offer(decision):
            case Offer.TAKEN:
                self._table.want_push()
            case Offer.GAP:
                self._table.want_repair(session, RepairCause.GAP, upto=entry.number)
            case Offer.OLD | Offer.FULL:
                pass  # here already, or read again when there is room

    def _decoded(self, session: Session, entry: StreamEntry) -> Decision | None:
        if entry.payload is None:
            return None
        try:
            decision = self._decode(entry.payload, session.cluster)
        except ValueError:
            return None
        return decision if decision.number == entry.number else None


def look_for_missing(table: SessionTable, all_for: RepairCause | None) -> None:
    """Ask the store for what sessions wait for in vain; `all_for`: for every session, and why.

    Called regularly. Catches what leaves no gap to see: a leader that died between its commit and
    Redis, an entry that was the last one when Redis lost it.
    """
    for session in table:
        overdue = session.lane.overdue()
        if not _listens(session):
            continue
        if overdue:
            table.want_repair(session, RepairCause.BEHIND)
        elif all_for is not None:
            table.want_repair(session, all_for)


class Repairer:
    """Reads from the store what a session lacks."""

    def __init__(
        self,
        store: DispatchStore,
        stream: DecisionStream | None,
        table: SessionTable,
        *,
        observer: Observer,
        limits: Limits,
    ) -> None:
        self._store = store
        self._stream = stream
        self._table = table
        self._observer = observer
        self._limits = limits

    async def repair(self, repair: Repair) -> None:
        """Read one session's next decisions. After StoreUnavailable it is still wanted."""
        session = repair.session
        asked = min(session.lane.room, self._limits.repair_batch)
        try:
            found = await self._read(session, asked)
        except Exception:
            self._table.want_repair(session, repair.cause, upto=repair.upto)
            raise
        self._observer.repaired(session.cluster, repair.cause, decisions=len(found))
        if len(found) == asked and session.lane.room:
            self._table.want_repair(session, repair.cause, upto=repair.upto)
            return
        if len(found) < asked and session.lane.read < repair.upto:
            await self._drop(session, repair.upto)
        session.repairing = False

    async def _read(self, session: Session, asked: int) -> list[Decision]:
        if not asked:
            return []
        lane = session.lane
        after, head = lane.read, lane.head
        found = await self._store.decisions_after(session.cluster, after, limit=asked)
        if lane.offer_all(found):
            self._table.want_push()
        elif not found and head > after:
            session.end(_forgotten(after + 1, head))
        return found

    async def _drop(self, session: Session, number: int) -> None:
        # What the store does not know was never committed: junk, or left from before a restore.
        # It would bar the way for the real number.
        self._observer.stream_ahead(session.cluster, number)
        if self._stream is None:
            return
        try:
            await self._stream.drop(session.cluster)
        except StreamUnavailable:
            return  # found again as soon as Redis answers


def _listens(session: Session) -> bool:
    return session.open and bool(session.lane.room) and not session.repairing and not session.frozen


def _forgotten(first: int, last: int) -> FailedPrecondition:
    return FailedPrecondition(
        f"decision {first} (of {last}) is no longer kept: the agent's journal is an old copy;"
        " begin with a fresh one",
        code=ErrorCode.WRONG_STATE,
    )
