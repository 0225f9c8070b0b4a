"""Stands for election, leads the loop of what is rented, and steps down.

Each provider has loops of its own, so that one that is away holds nobody else up.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from atoll.burst import telemetry
from atoll.burst.settings import BurstSettings
from atoll.burst.usecases.booked import Bookings, no_bookings
from atoll.burst.usecases.books import Books
from atoll.burst.usecases.deciding import DRAIN, RENT, Decider
from atoll.burst.usecases.demand import HISTORY_STEPS
from atoll.burst.usecases.desk import Desk
from atoll.burst.usecases.follower import Follower
from atoll.burst.usecases.foresight import Foresight
from atoll.burst.usecases.lives import Lives
from atoll.burst.usecases.look import Looker
from atoll.burst.usecases.missing import healths, missing
from atoll.burst.usecases.nobody import Nobody
from atoll.burst.usecases.reaper import reap
from atoll.burst.usecases.term import Term
from atoll.burst.usecases.upkeep import Upkeep, begin_policy, drop_offers
from atoll.core.engine.burst.broker.life import Act
from atoll.core.model.burst import MICROS
from atoll.core.model.errors import DomainError, Exhausted, StaleEpoch
from atoll.ports.election import Election, Leadership
from atoll.ports.provider import Provider
from atoll.ports.store.common import Contended, StoreUnavailable, UnknownOutcome
from atoll.ports.streams import Hints
from atoll.ports.topics import BURST
from atoll.runtime import logs
from atoll.runtime.terms import repeat, stand, until_lost

log = logs.logger(__name__)

NOTHING_HAPPENED: Final = (StoreUnavailable, Contended, Exhausted, UnknownOutcome)
"""Nothing was committed, or the rows tell: the same step may be taken again."""

EARLIEST: Final = 0.2
"""Part of its period after which a step may be taken early."""
FIRST_FORECAST_S: Final = 60.0
"""By then there is a minute of data."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A step that is taken again and again."""

    name: str
    step: Callable[[], Awaitable[None]]
    period_s: float
    first_s: float = math.inf
    """Before the first one, if that is less than the period."""
    hurries: bool = False
    """It is taken early when rows change: after a part of its period, as they change often."""


class Candidate:
    """One replica: leads when elected, for as long as the process lives."""

    def __init__(
        self,
        settings: BurstSettings,
        books: Books,
        providers: Mapping[str, Provider],
        *,
        hints: Hints,
        looker: Looker,
        bookings: Bookings = no_bookings,
    ) -> None:
        self._settings = settings
        self._books = books
        self._clock = books.clock
        self._hints = hints
        self._looker = looker
        self._bookings = bookings
        self._providers = providers
        self._wakes: set[asyncio.Event] = set()
        self.term: Term | None = None
        """Set while this replica leads."""

    async def watch_hints(self) -> None:
        """Look at once when somebody says that wants, instances or policies changed."""
        async for _ in self._hints.subscribe(BURST):
            self._wake_all()

    async def stand(self, election: Election) -> None:
        """Campaign, lead, step down, and again."""
        await stand(election, self._lead, ended=self._ended, clock=self._clock)

    async def close(self) -> None:
        """Let providers go."""
        for provider in self._providers.values():
            await provider.close()

    def _ended(self) -> bool:
        """Stand by again; whether this replica led."""
        led, self.term = self.term is not None, None
        telemetry.stands_by()
        return led

    async def _lead(self, leadership: Leadership) -> None:
        fence = await self._books.store.take_over(leadership.epoch)
        desks = {name: Desk(each, self._clock) for name, each in self._providers.items()}
        term = Term(self._books, fence, desks)
        await term.begin()
        await begin_policy(term, self._settings.first_policy)
        if gone := await drop_offers(term):
            log.warning("providers are not among the settings any more", providers=gone)
        self.term = term
        telemetry.leads()
        log.info("leading", epoch=str(leadership.epoch), providers=sorted(desks))
        async with asyncio.TaskGroup() as group:
            group.create_task(until_lost(leadership))
            for beat in self._steps(term):
                group.create_task(self._repeat(leadership, beat))

    def _steps(self, term: Term) -> list[Beat]:
        settings = self._settings
        upkeep = Upkeep(term, settings.keep_s)
        follower = Follower(HISTORY_STEPS * settings.forecast_step_s)
        foresight = Foresight(term, follower, settings.forecast_step_s, self._bookings)
        decider = Decider(term, foresight)
        strangers = Lives(term, Desk(Nobody(), self._clock), lambda name: name not in term.desks)
        forecast_s = settings.forecast_period_s
        return [
            Beat("lives", lambda: self._live(strangers), settings.period_s, hurries=True),
            Beat("decide", lambda: self._decide(decider), settings.decide_period_s, hurries=True),
            Beat("forecast", lambda: _foresee(foresight), forecast_s, first_s=FIRST_FORECAST_S),
            Beat("spend", lambda: self._count(upkeep), settings.spend_period_s),
            Beat("status", lambda: self._tell(term), settings.period_s),
            Beat("prune", lambda: _done(upkeep.prune()), settings.reaper_period_s),
            *(beat for desk in term.desks.values() for beat in self._at(desk, term, upkeep)),
        ]

    def _at(self, desk: Desk, term: Term, upkeep: Upkeep) -> list[Beat]:
        settings, lives = self._settings, Lives(term, desk, lambda name: name == desk.name)
        offers_s = settings.offers_period_s
        return [
            Beat("offers", lambda: _done(upkeep.refresh_offers(desk)), offers_s, first_s=0.0),
            Beat("lives", lambda: self._live(lives), settings.period_s, hurries=True),
            Beat("reap", lambda: _reap(term, desk), settings.reaper_period_s),
        ]

    async def _repeat(self, leadership: Leadership, beat: Beat) -> None:
        wake, first = asyncio.Event(), [beat.first_s]
        self._wakes.add(wake)

        async def wait() -> None:
            await self._until(wake, min([beat.period_s, *first]), beat)
            first.clear()

        try:
            await repeat(leadership, lambda: _taken(beat), wait=wait, clock=self._clock)
        finally:
            self._wakes.discard(wake)

    async def _until(self, wake: asyncio.Event, seconds: float, beat: Beat) -> None:
        """A step's time comes, or somebody says that there is something to be looked at."""
        if not beat.hurries:
            await self._clock.sleep(seconds)
            return
        least_s = seconds * EARLIEST
        await self._clock.sleep(least_s)
        sleep = asyncio.ensure_future(self._clock.sleep(seconds - least_s))
        woken = asyncio.ensure_future(wake.wait())
        try:
            await asyncio.wait([sleep, woken], return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            woken.cancel()
        wake.clear()

    def _wake_all(self) -> None:
        for wake in self._wakes:
            wake.set()

    async def _live(self, lives: Lives) -> None:
        with telemetry.STEP_SECONDS.time():
            happened = await lives.look()
        telemetry.happened(happened)
        if any(each.what != Act.WAIT.value for each in happened):
            self._wake_all()

    async def _decide(self, decider: Decider) -> None:
        happened = await decider.look()
        telemetry.happened(happened)
        if any(each.what in {RENT, DRAIN} for each in happened):
            self._wake_all()

    async def _count(self, upkeep: Upkeep) -> None:
        telemetry.SPEND.inc(await upkeep.count_spend() / MICROS)
        spend = await self._looker.spend(None, from_at=0.0, step_s=0.0)
        telemetry.money([spend.now, *spend.queues])

    async def _tell(self, term: Term) -> None:
        now, rows = await term.now(), await self._books.store.live_instances()
        telemetry.standing(rows, now=now)
        for desk in term.desks.values():
            telemetry.provider(desk)
        left = missing(rows, term.desks)
        telemetry.missing(left)
        await term.tell(now, self._settings.decide_period_s, healths(left))


async def _taken(beat: Beat) -> bool:
    """Take a step; False when nothing, or nobody knows what, happened.

    Raises StaleEpoch when somebody else leads.
    """
    try:
        await beat.step()
    except StaleEpoch:
        raise
    except NOTHING_HAPPENED as error:
        log.warning("nothing was committed, trying again", step=beat.name, error=str(error))
        return False
    except DomainError as error:
        telemetry.FAILED_STEPS.labels(beat.name).inc()
        log.error("a step failed", step=beat.name, code=error.code, error=str(error))
        return False
    except Exception:
        # A defect in one step must not keep the others from ending what costs money.
        telemetry.FAILED_STEPS.labels(beat.name).inc()
        log.exception("a step failed", step=beat.name)
        return False
    return True


async def _foresee(foresight: Foresight) -> None:
    telemetry.forecast(await foresight.look())


async def _reap(term: Term, desk: Desk) -> None:
    for each in await reap(term, desk):
        telemetry.REAPED.inc()
        log.warning("ended an orphan", provider=desk.name, machine=each.provider_id)


async def _done(step: Awaitable[object]) -> None:
    await step
