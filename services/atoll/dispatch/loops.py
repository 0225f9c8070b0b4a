"""The loops of a replica: each does one use case again and again, in batches."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from atoll.dispatch import telemetry
from atoll.dispatch.batching import Batcher
from atoll.dispatch.patience import AGAIN, Patience
from atoll.dispatch.usecases.beats import Beats, Heartbeat
from atoll.dispatch.usecases.follow import Follower, Repairer, look_for_missing
from atoll.dispatch.usecases.observer import RepairCause
from atoll.dispatch.usecases.push import Pusher
from atoll.dispatch.usecases.session import Session
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.clock import Clock, Ids
from atoll.ports.streams import Hints, StreamUnavailable
from atoll.ports.topics import DISPATCH
from atoll.runtime import logs

log = logs.logger(__name__)

LINGER_S: Final = 0.01
"""Pushes wait so long for others to join them."""

GATHER_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a replica looks for decisions when nobody tells it to."""

    read_wait_s: float = 0.1
    """A session that opens while Redis is being read joins in after this at most."""
    idle_s: float = 0.02
    """Between two looks for sessions that listen."""
    look_s: float = 0.2
    """Redis has this long to bring what the store is known to have."""


PACE: Final = Pace()
QUIET_S: Final = 0.5


class BeatLoop:
    """Commits heartbeats; an agent gets its answer after that, or none.

    One waits per session, the newest, however many come while the store is away.
    """

    def __init__(self, beats: Beats, clock: Clock, ids: Ids, *, most: int) -> None:
        self._beats = beats
        self._newest: dict[Session, int] = {}
        self._waiting: Batcher[Session] = Batcher(clock, linger_s=0.005, most=most)
        self._patience = Patience("commit heartbeats", clock, ids)

    def put(self, beat: Heartbeat) -> None:
        """Take a heartbeat in."""
        if beat.session not in self._newest:
            self._waiting.put(beat.session)
        self._newest[beat.session] = max(beat.number, self._newest.get(beat.session, 0))

    async def run(self) -> None:
        """Commit for ever."""
        while True:
            sessions = await self._waiting.take()
            batch = [Heartbeat(session, self._newest.pop(session)) for session in sessions]
            try:
                await self._beats.commit(batch)
            except AGAIN as error:
                await self._patience.after(error)
                for beat in batch:
                    self.put(beat)
            else:
                self._patience.well()


class PushLoop:
    """Pushes whatever waits, all sessions in one transaction."""

    def __init__(self, pusher: Pusher, table: SessionTable, *, clock: Clock, ids: Ids) -> None:
        self._pusher = pusher
        self._table = table
        self._clock = clock
        self._patience = Patience("push decisions", clock, ids)

    async def run(self) -> None:
        """Push for ever."""
        self._table.want_push()
        while True:
            await self._table.push_wanted.wait()
            await self._clock.sleep(LINGER_S)
            self._table.push_wanted.clear()
            try:
                while await self._pusher.push():
                    pass
            except AGAIN as error:
                self._table.want_push()
                await self._patience.after(error)
            else:
                self._patience.well()


class FollowLoop:
    """Reads Redis, watches for what it does not bring, and has it read from the store."""

    def __init__(
        self,
        follower: Follower | None,
        repairer: Repairer,
        table: SessionTable,
        *,
        hints: Hints,
        clock: Clock,
        ids: Ids,
        pace: Pace = PACE,
    ) -> None:
        self._pace = pace
        self._follower = follower
        self._repairer = repairer
        self._table = table
        self._hints = hints
        self._clock = clock
        self._ids = ids
        self.silent = follower is None
        """True while Redis does not answer (or there is none)."""

    def loops(self, repairs: int) -> dict[str, Callable[[], Awaitable[None]]]:
        """By name, what is to run."""
        found: dict[str, Callable[[], Awaitable[None]]] = {
            "look": self.look,
            "listen": self.listen,
        }
        if self._follower is not None:
            found["follow"] = self.follow
        return found | {f"repair-{number}": self.repair for number in range(repairs)}

    async def follow(self) -> None:
        """Read Redis for ever."""
        if self._follower is None:
            return
        pace = self._pace
        while True:
            try:
                busy = await self._follower.read(round(pace.read_wait_s * 1000))
            except StreamUnavailable as error:
                self._now_silent(str(error))
                await self._clock.sleep(pace.look_s)
                continue
            if busy:
                self._heard()
            # After a pause one read brings what several would have brought.
            await self._clock.sleep(GATHER_S if busy else pace.idle_s)

    async def look(self) -> None:
        """Look for what is missing, for ever."""
        while True:
            await self._clock.sleep(self._pace.look_s)
            look_for_missing(self._table, RepairCause.SILENT if self.silent else None)

    async def listen(self) -> None:
        """Decisions are said to be committed: look at once when Redis brings none."""
        async for _ in self._hints.subscribe(DISPATCH):
            quiet = self._follower is None or self._follower.idle_s() > QUIET_S
            if self.silent or quiet:
                look_for_missing(self._table, RepairCause.HINT)

    async def repair(self) -> None:
        """Read from the store what is wanted, one session after the other, for ever."""
        patience = Patience("read decisions from the store", self._clock, self._ids)
        while True:
            repair = self._table.next_repair()
            if repair is None:
                self._table.repair_wanted.clear()
                await self._table.repair_wanted.wait()
                continue
            try:
                await self._repairer.repair(repair)
            except AGAIN as error:
                await patience.after(error)
            else:
                patience.well()

    def _now_silent(self, error: str) -> None:
        if not self.silent:
            log.warning("Redis is silent: decisions are read from the store", error=error)
            look_for_missing(self._table, RepairCause.SILENT)
        self.silent = True
        telemetry.REDIS_SILENT.set(1)

    def _heard(self) -> None:
        if self.silent:
            log.info("Redis answers again")
        self.silent = False
        telemetry.REDIS_SILENT.set(0)


class WakeLoop:
    """Sends hints; what is asked for while one is on its way is sent once."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._topics: set[str] = set()
        self._some = asyncio.Event()

    def want(self, topic: str) -> None:
        """Notify a topic soon."""
        self._topics.add(topic)
        self._some.set()

    async def run(self) -> None:
        """Notify for ever."""
        while True:
            await self._some.wait()
            self._some.clear()
            topics, self._topics = self._topics, set()
            for topic in sorted(topics):
                await self._hints.notify(topic)
