"""One term of leadership: what is written in it passes its fence, one transaction at a time."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from atoll.burst.usecases import status
from atoll.burst.usecases.books import Books
from atoll.burst.usecases.desk import Desk, Health
from atoll.burst.usecases.status import LeaderStatus, status_to_bytes
from atoll.core.engine.burst.broker.clock import Jump, watched
from atoll.core.engine.burst.broker.life import LifeTerms
from atoll.core.engine.burst.broker.memory import Memory, memory_from_json
from atoll.core.model.burst import Instance
from atoll.core.model.errors import StaleEpoch
from atoll.ports.store.bookings import LoopFence
from atoll.ports.store.burst import BurstTx
from atoll.ports.store.common import UnknownOutcome

T = TypeVar("T")

KEPT_AS: Final = "broker"
"""Name under which the store keeps what a new leader goes on with."""
TELL_EVERY_S: Final = 10.0
MOST_IDLE_TIMES: Final = 200
"""Kept per type of instance."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing that the loop did, for the log and the metrics."""

    what: str
    instance: Instance
    """As it is now."""
    why: str = ""


@dataclass(slots=True)
class Term:
    """One term. Providers are asked outside of its transactions."""

    books: Books
    fence: LoopFence
    desks: Mapping[str, Desk]
    memory: Memory = field(default_factory=Memory)
    idle_s: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Past times from idle to the next use, by type of instance."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _jumps: tuple[Jump, ...] = ()
    _looked: tuple[float, float] | None = None
    """(monotonic, database time) of the last look at the clock."""
    _kept: bytes = b""
    _said: tuple[tuple[str, bool, str], ...] | None = None
    _told_until: float = 0.0

    async def begin(self) -> None:
        """Go on where the last leader was; raises nothing for what cannot be read."""
        kept = await self.books.store.memory(KEPT_AS)
        if not kept:
            return
        try:
            found = json.loads(kept)
            self.memory = memory_from_json(found["memory"])
            self.idle_s = {key: tuple(map(float, times)) for key, times in found["idle_s"].items()}
        except (ValueError, KeyError, TypeError):
            self.memory, self.idle_s = Memory(), {}

    async def write(self, change: Callable[[BurstTx], Awaitable[T]], *, quietly: bool = False) -> T:
        """Commit under the fence; raises StaleEpoch when somebody else leads."""
        passed: list[LoopFence] = []

        async def fenced(tx: BurstTx) -> T:
            passed.append(await tx.require(self.fence))
            return await change(tx)

        async with self._lock:
            try:
                result = await self.books.write(fenced, quietly=quietly)
            except UnknownOutcome:
                await self._find_out()
                raise
            self.fence = passed[-1]
        return result

    async def now(self) -> float:
        """Database time. Jumps of it are noted, so that nobody is given up for them."""
        async with self.books.store.begin() as tx:
            now = await tx.now()
        steady = self.books.clock.monotonic()
        if self._looked is not None:
            then, before = self._looked
            self._jumps = watched(self._jumps, passed_s=steady - then, before=before, now=now)
        self._looked = (steady, now)
        return now

    @property
    def life(self) -> LifeTerms:
        """How long is waited for what, jumps of the clock left out."""
        return replace(self.books.terms.life, jumps=self._jumps)

    def was_idle(self, key: str, seconds: float) -> None:
        """An instance of a type was used again after so long."""
        self.idle_s[key] = (*self.idle_s.get(key, ()), seconds)[-MOST_IDLE_TIMES:]

    async def keep(self) -> None:
        """Write what a new leader is to go on with, if it is other than before."""
        told = {"memory": self.memory.to_json(), "idle_s": self.idle_s}
        content = json.dumps(told, sort_keys=True).encode()
        if content != self._kept:
            await self.write(lambda tx: tx.put_memory(KEPT_AS, content), quietly=True)
            self._kept = content

    async def tell(self, now: float, every_s: float, missing: Sequence[Health] = ()) -> None:
        """Write how providers are, for other replicas to tell: when that changed, or got old."""
        health = (*(desk.health for desk in self.desks.values()), *missing)
        said = tuple((each.name, each.reachable, each.message) for each in health)
        if said == self._said and now < self._told_until:
            return
        content = status_to_bytes(LeaderStatus(now + every_s, every_s, health))
        await self.write(lambda tx: tx.put_memory(status.KEPT_AS, content), quietly=True)
        self._said, self._told_until = said, now + TELL_EVERY_S

    async def _find_out(self) -> None:
        """Whether somebody else leads; the rows tell what was done."""
        fence = await self.books.store.read_fence()
        if fence.epoch != self.fence.epoch:
            raise StaleEpoch
        self.fence = fence
