"""A log of a parallel machine, replayed on a virtual clock under a policy of time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.timeline.backfill_kernels import Asks, Found
from atoll.core.engine.timeline.eta_kernels import LEVELS, new_calibration
from atoll.core.engine.timeline.profile_kernels import Steps
from atoll.core.engine.timeline.rank_kernels import Forms, Line
from atoll.core.policies.time_order import TimeOrder
from atoll.core.state.backlog_kernels import empty_backlog
from atoll.core.state.history_kernels import Alive, empty_history
from atoll.sim.backfill_kernels import NONE, Knowledge, Run, Scratch, Told, simulate
from atoll.sim.pool_kernels import Log, Pool
from atoll.sim.readers.parallel import ParallelLog

Floats = NDArray[np.float64]
EVENTS: Final = 4096
"""Between two ticks of the progress bar."""
SHORT_S: Final = 10.0
"""Bound of the bounded slowdown."""
REMEMBERED: Final = 64
"""Runs of an owner."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What came out, (J) each, in the order of the log."""

    start: Floats
    wait: Floats
    forecast: Floats
    """Wait that was told at submit, as a point; negative for jobs that started at once."""
    quantiles: Floats
    """(J, LEVELS)."""


def simulate_log(
    log: ParallelLog, processors: int, policy: TimeOrder, *, tick: Callable[[int], None]
) -> Outcome:
    """Run all jobs. `tick` is told how many have come. All must fit the machine."""
    run = _run(log, processors)
    while simulate(run, policy, EVENTS):
        tick(int(run.pool.came[0]))
    start = run.pool.start
    return Outcome(start, start - log.submit, run.told.point, run.told.quantiles)


def slowdowns(wait: Floats, run: Floats) -> Floats:
    """(J) bounded slowdowns: (wait + run) / run, runs of 10 s at least, and never below 1."""
    return np.maximum(1.0, (wait + run) / np.maximum(run, SHORT_S))


def coverage(outcome: Outcome) -> tuple[float, ...]:
    """By level, the part of the forecasts before which the job had started."""
    told = outcome.forecast >= 0
    if not told.any():
        return tuple(float("nan") for _ in LEVELS)
    inside = outcome.wait[told, None] <= outcome.quantiles[told]
    return tuple(inside.mean(axis=0).tolist())


def median_error_s(outcome: Outcome) -> float:
    """Mean distance of the start from the forecast that half are expected to keep."""
    told = outcome.forecast >= 0
    error = np.abs(outcome.wait[told] - outcome.quantiles[told, LEVELS.index(0.5)])
    return float(error.mean()) if told.any() else 0.0


def _run(log: ParallelLog, processors: int) -> Run:
    count = len(log.job)
    owner = np.unique(log.user, return_inverse=True)[1].ravel().astype(np.int64)
    alike = np.stack([owner, log.processors, log.request.astype(np.int64)])
    form = np.unique(alike, axis=1, return_inverse=True)[1].ravel().astype(np.int64)
    asks = Asks(log.processors, log.request, form, np.ones(count, np.bool_))
    line = Line(
        submitted=log.submit,
        size=log.processors,
        form=form,
        hurry=np.zeros(count),
        length=np.zeros(count),
        place=np.zeros(count),
        aged=np.zeros(count, np.bool_),
    )
    told = Told(np.full(count, NONE), np.zeros((count, len(LEVELS))))
    known = _nothing_known(int(owner.max()) + 1, int(form.max()) + 1, float(log.submit[0]))
    pool, scratch = _pool(log, processors), _scratch(count, processors)
    return Run(Log(log.run, owner, line, asks), pool, known, told, scratch)


def _pool(log: ParallelLog, processors: int) -> Pool:
    count = len(log.job)
    return Pool(
        processors=processors,
        now=np.zeros(1),
        free=np.array([processors], np.int64),
        came=np.zeros(1, np.int64),
        waits=np.zeros(1, np.int64),
        runs=np.zeros(1, np.int64),
        waiting=np.zeros(count, np.int64),
        running=np.zeros(count, np.int64),
        heap=np.zeros(count, np.int64),
        start=np.full(count, np.nan),
        end=np.full(count, np.nan),
    )


def _nothing_known(owners: int, forms: int, now: float) -> Knowledge:
    def none() -> NDArray[np.int64]:
        return np.zeros(forms, np.int64)

    alive = Alive(np.zeros(REMEMBERED), np.zeros(REMEMBERED), np.zeros(REMEMBERED, np.int64))
    return Knowledge(
        history=empty_history(owners, REMEMBERED),
        alive=alive,
        changed=np.zeros(owners, np.bool_),
        forms=Forms(none(), none(), np.full(forms, -np.inf), none()),
        backlog=empty_backlog(now),
        calibration=new_calibration(),
    )


def _scratch(count: int, processors: int) -> Scratch:
    found = Found(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count))
    # Every job that runs ends a step, every one that starts or holds begins and ends one.
    steps = 4 * count + 8
    kept = _steps(steps)
    kept.free[0], kept.size[0] = processors, 1
    return Scratch(
        _steps(steps), kept, np.zeros(count), np.zeros(count), np.zeros(count, np.int64), found
    )


def _steps(size: int) -> Steps:
    return Steps(np.zeros(size), np.zeros(size, np.int64), np.zeros(1, np.int64))
