"""Replays jobs with a deadline over windows of spot availability, one tick after another.

A rule is shown what is up in the tick that begins, and nothing later. After the last tick of a
window no spot is to be had any more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from atoll.core.engine.burst.spot import (
    Choice,
    Run,
    SpotRule,
    Terms,
    advance,
    decide,
    price_per_h,
)
from atoll.core.engine.burst.watch import look
from atoll.sim.readers.spot import SpotWindow
from atoll.sim.spot_bound_kernels import least_cost


@dataclass(frozen=True, slots=True)
class Played:
    """A job over a window: what it ran on in each tick until it was done or out of time."""

    zones: tuple[str, ...]
    window: int
    choices: tuple[Choice, ...]
    cost: float
    """Dollars."""
    missed: bool


def play(rule: SpotRule, zones: Sequence[SpotWindow], terms: Terms) -> Played:
    """Run the job over windows of zones that are aligned in time (or of a single zone)."""
    run, market, choices = Run(terms.work_s), None, list[Choice]()
    for tick in range(math.ceil(terms.deadline_s / terms.tick_s)):
        up = tuple(tick < len(zone.up) and zone.up[tick] for zone in zones)
        market = look(market, up, terms.tick_s)
        run, choice = decide(rule, run, market, terms=terms)
        choices.append(choice)
        run = advance(run, choice, terms)
        if run.ended_s is not None:
            break
    missed = run.ended_s is None or run.ended_s > terms.deadline_s
    cost = math.fsum(price_per_h(choice, terms) for choice in choices) * terms.tick_s / 3600
    names = tuple(zone.zone for zone in zones)
    return Played(names, zones[0].window, tuple(choices), cost, missed)


def cost_ratio(played: Sequence[Played], terms: Terms) -> float:
    """Mean cost over that of the work on demand without any overhead."""
    return fmean(each.cost for each in played) / (terms.work_s / 3600 * terms.on_demand_per_h)


def bound_ratio(groups: Sequence[tuple[SpotWindow, ...]], terms: Terms) -> float:
    """The ratio for one who knows the future, over windows of single zones."""
    costs = [_least(window, terms) for (window,) in groups]
    return fmean(costs) / (terms.work_s / 3600 * terms.on_demand_per_h)


def _least(window: SpotWindow, terms: Terms) -> float:
    times = [round(each) for each in (terms.work_s, window.tick_s, terms.overhead_s)]
    unit = math.gcd(*times)
    work, tick, overhead = (each // unit for each in times)
    ticks = int(terms.deadline_s // window.tick_s)
    up = np.zeros(ticks, np.bool_)
    up[: len(window.up)] = window.up[:ticks]
    hours = window.tick_s / 3600
    prices = terms.spot_per_h * hours, terms.on_demand_per_h * hours
    return least_cost(up, work, tick, overhead, *prices)
