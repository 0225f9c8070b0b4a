"""Pushes decisions to agents: first it is committed that they are sent, then they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from atoll.core.model.errors import StaleSession
from atoll.core.model.messages import Decision
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.observer import BatchKind, Observer
from atoll.dispatch.usecases.outbox import Decisions
from atoll.dispatch.usecases.ready import Readier
from atoll.dispatch.usecases.session import Session
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.clock import Clock
from atoll.ports.store.dispatch import DispatchStore


@dataclass(frozen=True, slots=True)
class _Load:
    session: Session
    decisions: tuple[Decision, ...]

    @property
    def last(self) -> int:
        return self.decisions[-1].number


class Pusher:
    """Takes what waits in all sessions' lanes, in one transaction for all of them."""

    def __init__(
        self,
        store: DispatchStore,
        table: SessionTable,
        ready: Readier,
        *,
        observer: Observer,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._store = store
        self._table = table
        self._ready = ready
        self._observer = observer
        self._clock = clock
        self._limits = limits
        self._turn = 0

    async def push(self) -> bool:
        """One round; False when nothing could be pushed. Raises Unavailable: nothing was pushed.

        After a lost reply to the commit it is simply done again: `sent_seq` only rises.
        """
        since = self._clock.now()
        loads = self._loads()
        if not loads:
            return False
        holding = await self._store.mark_sent([
            (load.session.cluster, load.session.epoch, load.last) for load in loads
        ])
        kept = [load for load in loads if self._still(load, load.session.cluster in holding)]
        ready = iter(await self._ready([d for load in kept for d in load.decisions]))
        for load in kept:
            items = tuple(islice(ready, len(load.decisions)))
            self._observer.pushed(items, since=since)
            load.session.outbox.decisions(Decisions(items))
            load.session.lane.pushed(load.last)
        self._observer.batch(BatchKind.PUSHES, sum(len(load.decisions) for load in kept))
        return True

    def _loads(self) -> list[_Load]:
        left = self._limits.push_total
        loads = []
        for session in self._in_turn():
            take = session.lane.peek(min(left, self._limits.push_batch))
            if take:
                loads.append(_Load(session, take))
                left -= len(take)
            if not left:
                break
        return loads

    def _in_turn(self) -> Iterator[Session]:
        # Another session is first each time, so that a bounded batch starves none.
        sessions = [s for s in self._table if s.lane.waiting and s.outbox.has_room]
        self._turn += 1
        first = self._turn % len(sessions) if sessions else 0
        for session in sessions[first:] + sessions[:first]:
            if not session.frozen:
                yield session

    @staticmethod
    def _still(load: _Load, holds: bool) -> bool:
        if not holds:
            load.session.end(StaleSession())
        return holds
