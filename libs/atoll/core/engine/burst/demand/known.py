"""Demand simulated from what is known: running jobs end, waiting ones run, others come.

Seeded Monte Carlo: everything is drawn from the generator that the caller gives.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.compact import left_of, merged
from atoll.core.engine.burst.demand.series import (
    DAY,
    STEP_S,
    Demand,
    Floats,
    Ints,
    Jobs,
)
from atoll.core.engine.burst.demand.survival import Survival, classes_of

RUNS: Final = 256
DAYS: Final = 14
"""Looked back for what comes in an hour."""
NEAR: Final = 1
"""An hour comes as this one, or as one that is at most so many hours off in the day."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What the jobs that want devices now are expected to hold."""

    mean: Floats
    """(H)."""
    variance: Floats
    """(H)."""


def held(jobs: Jobs, survival: Survival, horizon: int) -> Held:
    """By the survival of their remaining time."""
    mine = _present(jobs)
    amount, count = mine.amount, mine.counts
    stay = survival.ahead(classes_of(amount), mine.ran_s, horizon)
    return Held((amount * count) @ stay, (amount * amount * count) @ (stay * (1 - stay)))


def simulate(
    demand: Demand, survival: Survival, horizon: int, *, draw: np.random.Generator
) -> Floats:
    """(RUNS, H) demand at each step ahead, without what is booked."""
    now = _held_runs(demand.jobs, survival, horizon, draw=draw)
    return now + _coming_runs(demand, survival, horizon, draw=draw)


def _held_runs(
    jobs: Jobs, survival: Survival, horizon: int, *, draw: np.random.Generator
) -> Floats:
    mine = _present(jobs)
    amount = mine.amount
    stay = survival.ahead(classes_of(amount), mine.ran_s, horizon)
    if mine.many is not None:
        left = left_of(mine.many, stay, draw=draw, runs=RUNS)
        return np.stack([left[:, :, step] @ amount for step in range(horizon)], axis=1)
    luck = draw.random((RUNS, len(amount)))
    # A job is still there as long as the chance to be there is above its luck.
    return np.stack([(luck < stay[:, step]) @ amount for step in range(horizon)], axis=1)


def _present(jobs: Jobs) -> Jobs:
    """Those that want devices now."""
    mine = jobs.where(jobs.running)
    return mine if mine.many is None else merged(mine)


def _coming_runs(
    demand: Demand, survival: Survival, horizon: int, *, draw: np.random.Generator
) -> Floats:
    """Each step ahead brings what some step of the last days brought, hours as they were."""
    steps = min(len(demand.history) - 1, DAYS * DAY)
    if steps < 1:
        return np.zeros((RUNS, horizon))
    brought = _brought(demand.jobs, survival, steps, horizon=horizon, draw=draw)
    found = np.zeros((RUNS, horizon))
    for ahead in range(horizon):
        back = _alike(steps, ahead, draw)
        found[:, ahead:] += brought[back, : horizon - ahead]
    return found


def _alike(steps: int, ahead: int, draw: np.random.Generator) -> Ints:
    """(RUNS) steps back, from 0, of the same time of the day, or nearly."""
    days = max(1, steps // DAY)
    back = DAY - 1 - ahead % DAY + DAY * draw.integers(0, days, RUNS)
    near = np.clip(back + draw.integers(-NEAR, NEAR + 1, RUNS), 0, steps - 1)
    return np.asarray(near, dtype=np.int64)


def _brought(
    jobs: Jobs, survival: Survival, steps: int, *, horizon: int, draw: np.random.Generator
) -> Floats:
    """(steps, H) devices that the jobs of each step back hold, steps after they came."""
    back = (jobs.age_s // STEP_S).astype(np.int64)
    mine = back < steps
    amount = jobs.amount[mine]
    chance = survival.fresh(horizon)[:, classes_of(amount)]
    if jobs.many is None:
        stays = np.asarray(draw.random(len(amount)) < chance, dtype=float)
    else:
        stays = left_of(jobs.many[mine], chance.T, draw=draw, runs=1)[0].T
    found = np.zeros((steps, horizon))
    np.add.at(found, back[mine], (stays * amount).T)
    return found
