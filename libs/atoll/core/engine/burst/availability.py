"""Spot capacity as a Markov chain, so that what is to come has an expected cost.

A state is: up or down, since when (in bands), and the share of time up (in bands). A band is left
at the rate at which it would be crossed. The chance of a turn is the prior's, leant so that the
share of time up stays what it is: the prior tells how long runs are, the zone how often it is up.
A prior that hopes for better times in a poor zone makes a job wait for them until it is late.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.burst.expected_cost_kernels import Chain
from atoll.core.engine.burst.priors import TURN_S, Prior, turn_chance
from atoll.core.engine.burst.watch import HALF_LIFE_S, Seen

AGES_S: Final = tuple(TURN_S * ticks for ticks in (2, 3, 5, 9, 17, 33))
"""Where bands of age begin; the first one begins at 0, the last one has no end."""
SHARES: Final = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85)
STATES: Final = 2 * (len(AGES_S) + 1) * (len(SHARES) + 1)
LEAN: Final = 6.0
"""The most there is."""

Moves = dict[int, float]


@dataclass(frozen=True, slots=True)
class _Band:
    """Bands of a state, by number."""

    up: bool
    age: int
    share: int

    @property
    def state(self) -> int:
        return (self.up * (len(AGES_S) + 1) + self.age) * (len(SHARES) + 1) + self.share


def state_of(seen: Seen) -> int:
    """The state of a zone."""
    age, share = bisect_right(AGES_S, seen.run_s), bisect_right(SHARES, seen.share)
    return _Band(seen.up, age, share).state


def chain_of(prior: Prior, step_s: float) -> Chain:
    """The chain for steps of so many seconds."""
    bands = [
        _Band(up, age, share)
        for up in (False, True)
        for age in range(len(AGES_S) + 1)
        for share in range(len(SHARES) + 1)
    ]
    leans = [_lean(prior, share, step_s) for share in range(len(SHARES) + 1)]
    moves = [_moves(band, prior, step_s, lean=leans[band.share]) for band in bands]
    counts = np.cumsum([0, *map(len, moves)])
    to = [state for each in moves for state in each]
    chance = [chance for each in moves for chance in each.values()]
    up = np.array([band.up for band in bands])
    return Chain(counts.astype(np.int64), np.array(to, np.int64), np.array(chance), up)


def _lean(prior: Prior, share: int, step_s: float) -> float:
    """With which the share of time up stays in the middle of its band."""
    low, high = -LEAN, LEAN
    for _ in range(30):
        lean = (low + high) / 2
        up_s, down_s = (_run(prior, share, step_s, up=up, lean=lean) for up in (True, False))
        if up_s / (up_s + down_s) < sum(_share(share)) / 2:
            low = lean
        else:
            high = lean
    return (low + high) / 2


def _run(prior: Prior, share: int, step_s: float, *, up: bool, lean: float) -> float:
    """Steps for which the market stays up, or down, on average."""
    steps, comes = 0.0, 1.0
    for age in range(len(AGES_S) + 1):
        band = _Band(up, age, share)
        turns = turn_chance(prior, _typical(band), step_s, lean=lean)
        ages = dict(_ageing(band, step_s)).get(age + 1, 0.0)
        here = comes / (turns + (1 - turns) * ages)
        steps, comes = steps + here, here * (1 - turns) * ages
    return steps


def _moves(band: _Band, prior: Prior, step_s: float, *, lean: float) -> Moves:
    turns = turn_chance(prior, _typical(band), step_s, lean=lean)
    moves: Moves = {}
    for share, drifts in _drift(band, step_s):
        _put(moves, _Band(not band.up, 0, share), turns * drifts)
        for age, ages in _ageing(band, step_s):
            _put(moves, _Band(band.up, age, share), (1 - turns) * drifts * ages)
    return moves


def _typical(band: _Band) -> Seen:
    """A zone in the middle of the bands; in the middle of an age by its logarithm."""
    begin, end = _age_s(band.age)
    run_s = math.sqrt(begin * max(begin, end - TURN_S))
    low, high = _share(band.share)
    return Seen(band.up, run_s, (low + high) / 2, 1.0)


def _drift(band: _Band, step_s: float) -> list[tuple[int, float]]:
    """Where the share of time up is after a step, and how likely."""
    low, high = _share(band.share)
    pull = (1 - 0.5 ** (step_s / HALF_LIFE_S)) / (high - low)
    middle = (low + high) / 2
    moves = min(1.0, pull * (1 - middle if band.up else middle))
    beside = min(band.share + 1, len(SHARES)) if band.up else max(band.share - 1, 0)
    return [(band.share, 1 - moves), (beside, moves)]


def _ageing(band: _Band, step_s: float) -> list[tuple[int, float]]:
    if band.age == len(AGES_S):
        return [(band.age, 1.0)]
    begin, end = _age_s(band.age)
    ages = min(1.0, step_s / (end - begin))
    return [(band.age, 1 - ages), (band.age + 1, ages)]


def _age_s(band: int) -> tuple[float, float]:
    edges = (TURN_S, *AGES_S, 2 * AGES_S[-1])
    return edges[band], edges[band + 1]


def _share(band: int) -> tuple[float, float]:
    edges = (0.0, *SHARES, 1.0)
    return edges[band], edges[band + 1]


def _put(moves: Moves, band: _Band, chance: float) -> None:
    if chance > 0:
        moves[band.state] = moves.get(band.state, 0.0) + chance
