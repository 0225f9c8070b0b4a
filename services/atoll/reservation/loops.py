"""Stands for election, leads the loop of bookings, and steps down; every replica follows."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from atoll.core.model.errors import DomainError, Exhausted, StaleEpoch
from atoll.ports.clock import Clock
from atoll.ports.election import Election, Leadership
from atoll.ports.store.common import Contended, StoreUnavailable, UnknownOutcome
from atoll.ports.streams import Hints
from atoll.ports.topics import BOOKINGS
from atoll.reservation import telemetry
from atoll.reservation.settings import ReservationSettings
from atoll.reservation.usecases.automation import Automation
from atoll.reservation.usecases.deeds import Done
from atoll.reservation.usecases.ground import Ground
from atoll.reservation.usecases.keeper import Term
from atoll.runtime import logs
from atoll.runtime.terms import RETRY, LeadershipLost, repeat, stand, until_lost

log = logs.logger(__name__)

NOTHING_HAPPENED: Final = (StoreUnavailable, Contended, Exhausted)
"""Nothing was committed: the same step may be tried again."""

SAVE_EVERY: Final = 15
"""Looks at what owners use until it is written."""
SHORTEST_S: Final = 0.005


class Candidate:
    """One replica: follows always, leads when elected, for as long as the process lives."""

    def __init__(
        self, settings: ReservationSettings, ground: Ground, *, hints: Hints, clock: Clock
    ) -> None:
        self._settings = settings
        self._ground = ground
        self._hints = hints
        self._clock = clock
        self._wake = asyncio.Event()
        self._measured = 0
        self._automation: Automation | None = None
        self.term: Term | None = None
        """Set while this replica leads."""

    async def follow(self) -> None:
        """Keep the replica young, so that no call has to wait for it."""
        failures = 0
        while True:
            try:
                await self._ground.replica.follow()
            except NOTHING_HAPPENED as error:
                failures += 1
                log.warning("the store is away, trying again", error=str(error))
                await self._clock.sleep(RETRY.wait_s(failures, 0.0))
                continue
            failures = 0
            await self._clock.sleep(self._settings.period_s)

    async def watch_hints(self) -> None:
        """Look at once when somebody says that bookings changed."""
        async for _ in self._hints.subscribe(BOOKINGS):
            self._wake.set()

    async def stand(self, election: Election) -> None:
        """Campaign, lead, step down, and again."""
        await stand(election, self._lead, ended=self._ended, clock=self._clock)

    def _ended(self) -> bool:
        """Stand by again; whether this replica led."""
        led, self.term = self.term is not None, None
        telemetry.stands_by()
        return led

    async def _lead(self, leadership: Leadership) -> None:
        settings = self._settings
        fence = await self._ground.store.take_over(leadership.epoch)
        await self._ground.replica.follow()
        term = self.term = Term(self._ground, fence, settings.horizon_s)
        telemetry.leads()
        log.info("leading", epoch=str(leadership.epoch), occurrences=len(term.kept))
        async with asyncio.TaskGroup() as group:
            group.create_task(until_lost(leadership))
            group.create_task(self._repeat(leadership, self._act, wait=self._until_due))
            for step, period_s in (
                (self._measure, settings.measure_period_s),
                (self._upkeep, settings.upkeep_period_s),
            ):
                group.create_task(self._every(leadership, step, period_s))

    async def _every(
        self, leadership: Leadership, step: Callable[[Term], Awaitable[None]], period_s: float
    ) -> None:
        await self._repeat(leadership, step, wait=lambda: self._clock.sleep(period_s))

    async def _repeat(
        self,
        leadership: Leadership,
        step: Callable[[Term], Awaitable[None]],
        *,
        wait: Callable[[], Awaitable[None]],
    ) -> None:
        await repeat(leadership, lambda: self._step(step), wait=wait, clock=self._clock)

    async def _step(self, step: Callable[[Term], Awaitable[None]]) -> bool:
        """Run one step; False when the store was away and nothing, or nobody knows what, happened.

        Raises StaleEpoch when somebody else leads.
        """
        term = self.term
        if term is None:
            raise LeadershipLost("this replica does not lead")
        async with term.lock:
            try:
                await step(term)
            except NOTHING_HAPPENED as error:
                log.warning("nothing was committed, trying again", error=str(error))
                return False
            except UnknownOutcome as error:
                log.warning("reading the fence anew", error=str(error))
                await self._find_out(term)
            except StaleEpoch:
                raise
            except DomainError as error:
                # One booking that cannot be dealt with must not keep the others from it.
                log.error("a step failed", code=error.code, error=str(error))
                return False
        return True

    async def _find_out(self, term: Term) -> None:
        """Whether somebody else leads; the rows tell what was done."""
        with suppress(*NOTHING_HAPPENED):
            fence = await self._ground.store.read_fence()
            if fence.epoch != term.fence.epoch:
                raise StaleEpoch
            term.fence = fence
        self._wake.set()

    async def _until_due(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause_s()):
                await self._wake.wait()
        self._wake.clear()

    def _pause_s(self) -> float:
        term = self.term
        if term is None:
            return self._settings.period_s
        now = self._clock.now()
        return max(SHORTEST_S, min(self._settings.period_s, term.next_due(now) - now))

    async def _act(self, term: Term) -> None:
        with telemetry.STEP_SECONDS.time():
            await self._ground.replica.follow()
            done = [*await term.act(), *await term.mend()]
        _tell(done)
        telemetry.LIVE.set(len(term.kept))
        telemetry.SHORT.set(term.missing)
        if done:
            self._wake.set()

    async def _measure(self, term: Term) -> None:
        await term.measure()
        self._measured += 1
        if self._measured % SAVE_EVERY == 0:
            await term.save_use()

    async def _upkeep(self, term: Term) -> None:
        await term.plan_on()
        await term.retire()
        if self._automation is None or self._automation.term is not term:
            self._automation = Automation(term)
        await self._automation.look()
        await self._ground.store.prune(self._settings.retention)


def _tell(done: list[Done]) -> None:
    for each in done:
        telemetry.happened(each.event, late_s=each.late_s)
        log.info("booking", what=each.event.value, occurrence=each.occurrence, late_s=each.late_s)
