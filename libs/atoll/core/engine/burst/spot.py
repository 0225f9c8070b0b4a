"""A job with a deadline on rented capacity: spot, on demand or nothing, tick by tick.

A rule chooses; the safety net overrules it when the deadline could not be met any more by going
on demand in the next tick, the overhead of that start included. So no rule can miss a deadline
that could be met at the beginning. What is paid is held: a tick is paid as a whole.
"""

import enum
from dataclasses import dataclass
from typing import Final, Protocol

from atoll.core.engine.burst.priors import EAST, Prior
from atoll.core.engine.burst.watch import Market


class Mode(enum.StrEnum):
    """What a job runs on in a tick."""

    NONE = "none"
    SPOT = "spot"
    ON_DEMAND = "od"


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run on in the next tick; `zone` is an index into Market.zones, for spot alone."""

    mode: Mode
    zone: int = -1


NOTHING: Final = Choice(Mode.NONE)
ON_DEMAND: Final = Choice(Mode.ON_DEMAND)


@dataclass(frozen=True, slots=True)
class Terms:
    """What is to be done by when, and what it costs. Times in seconds, prices per hour."""

    work_s: float
    deadline_s: float
    """From the beginning."""
    overhead_s: float
    """Nothing is done for so long after each start, and each move to another zone."""
    tick_s: float
    on_demand_per_h: float
    spot_per_h: float
    prior: Prior = EAST
    """What spot capacity did elsewhere."""


@dataclass(frozen=True, slots=True)
class Run:
    """How far the job is. Times in seconds."""

    left_s: float
    """Work that is left."""
    now_s: float = 0.0
    where: Choice = NOTHING
    overhead_left_s: float = 0.0
    ended_s: float | None = None
    """When the work was done."""


class SpotRule(Protocol):
    """Chooses what to run on. It sees the market up to now and nothing that is to come."""

    def choose(self, run: Run, market: Market, terms: Terms) -> Choice:
        """A choice for the next tick; spot only in a zone that is up."""
        ...


def decide(rule: SpotRule, run: Run, market: Market, *, terms: Terms) -> tuple[Run, Choice]:
    """The run with what it has lost by now, and what to run on in the next tick."""
    run = preempted(run, market)
    choice = rule.choose(run, market, terms)
    if choice.mode is Mode.SPOT and not market.zones[choice.zone].up:
        choice = NOTHING
    return run, choice if is_safe(run, choice, terms) else ON_DEMAND


def advance(run: Run, choice: Choice, terms: Terms) -> Run:
    """The run one tick later; a start or a move begins with the whole overhead."""
    now_s = run.now_s + terms.tick_s
    if choice.mode is Mode.NONE:
        return Run(run.left_s, now_s)
    overhead_s = overhead_of(run, choice, terms)
    idle_s = min(terms.tick_s, overhead_s)
    worked_s = min(run.left_s, terms.tick_s - idle_s)
    left_s = run.left_s - worked_s
    ended_s = run.now_s + idle_s + worked_s if left_s <= 0 else None
    return Run(left_s, now_s, choice, overhead_s - idle_s, ended_s)


def preempted(run: Run, market: Market) -> Run:
    """The run without its spot instance, if the zone of that is down."""
    where = run.where
    lost = where.mode is Mode.SPOT and not market.zones[where.zone].up
    return Run(run.left_s, run.now_s) if lost else run


def is_safe(run: Run, choice: Choice, terms: Terms) -> bool:
    """Whether the deadline can still be met after a tick of this; on demand always counts so."""
    if choice.mode is Mode.ON_DEMAND:
        return True
    after = advance(run, choice, terms)
    if after.ended_s is not None:
        return after.ended_s <= terms.deadline_s
    return after.now_s + after.left_s + terms.overhead_s <= terms.deadline_s


def overhead_of(run: Run, choice: Choice, terms: Terms) -> float:
    """Seconds in which a choice does nothing at first: the rest of a start, or a whole one."""
    return run.overhead_left_s if choice == run.where else terms.overhead_s


def price_per_h(choice: Choice, terms: Terms) -> float:
    """Dollars per hour while it is held."""
    match choice.mode:
        case Mode.NONE:
            return 0.0
        case Mode.SPOT:
            return terms.spot_per_h
        case Mode.ON_DEMAND:
            return terms.on_demand_per_h
