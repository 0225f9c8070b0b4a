"""The sessions of this replica, and what is to be done for them."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from atoll.core.model.errors import DomainError, ErrorCode, StaleSession, Unavailable
from atoll.core.model.ids import ClusterName
from atoll.dispatch.usecases.observer import RepairCause
from atoll.dispatch.usecases.session import Session


@dataclass(frozen=True, slots=True)
class Repair:
    """A session whose decisions are to be read from the store."""

    session: Session
    cause: RepairCause
    upto: int = 0
    """Redis showed this number, so the store is expected to have it; 0: none."""


class SessionTable:
    """One session per cluster: the one with the highest epoch."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._sessions: dict[ClusterName, Session] = {}
        self._closed: DomainError | None = None
        self._repairs: dict[Session, Repair] = {}
        self.push_wanted = asyncio.Event()
        self.repair_wanted = asyncio.Event()

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, cluster: ClusterName) -> Session | None:
        """The cluster's session here, if there is one."""
        return self._sessions.get(cluster)

    def admit(self) -> None:
        """Raise Unavailable when this replica takes no more sessions."""
        if self._closed is not None:
            raise self._closed
        if len(self._sessions) >= self._most:
            raise Unavailable("this replica is full; try another", code=ErrorCode.UNAVAILABLE)

    def enter(self, session: Session) -> None:
        """Add a session; the older one of its cluster ends, be it the one that comes."""
        before = self._sessions.get(session.cluster)
        if before is not None and before.epoch > session.epoch:
            session.end(StaleSession())
            return
        self._sessions[session.cluster] = session
        if before is not None:
            before.end(StaleSession())
        if self._closed is not None:
            session.end(self._closed)

    def leave(self, session: Session) -> None:
        """The session is over; another one of its cluster stays."""
        session.end()
        self._repairs.pop(session, None)
        if self._sessions.get(session.cluster) is session:
            del self._sessions[session.cluster]

    def close(self, error: DomainError) -> None:
        """End all sessions with `error`, those too that come later."""
        self._closed = error
        for session in self:
            session.end(error)

    def want_push(self) -> None:
        """Some session has decisions to push."""
        self.push_wanted.set()

    def want_repair(self, session: Session, cause: RepairCause, *, upto: int = 0) -> None:
        """Read this session's decisions from the store; Redis is not asked until that is done."""
        session.repairing = True
        self._repairs.setdefault(session, Repair(session, cause, upto))
        self.repair_wanted.set()

    def next_repair(self) -> Repair | None:
        """The one that waits longest."""
        while self._repairs:
            repair = self._repairs.pop(next(iter(self._repairs)))
            if repair.session.open:
                return repair
        return None
