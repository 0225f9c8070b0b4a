"""Replays traces to a forecaster of demand, which is told at each origin what is known then.

The forecaster is the one of the service. A series is a cluster's GPUs in use at every full hour,
from its first job to the last whole day of its trace; forecasts are made an hour before midnight
for the 24 hours from midnight on (or another horizon), every day, and judged on the last days.
Everything before teaches.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from atoll.burst.forecasting.forecaster import Forecaster
from atoll.core.engine.burst.demand.forecast import Forecast
from atoll.core.engine.burst.demand.series import DAY, STEP_S, Demand, Floats, Jobs, Key
from atoll.ports.clock import Clock
from atoll.sim.readers.elasticflow_raw import RawJob

KIND: Final = "GPU"
LOOK: Final = 6
"""Hours between two looks at what is known."""
WARM: Final = 3 * DAY
"""Hours of a series before its first forecast."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Jobs of a cluster in columns, and its demand by hour."""

    key: Key
    submitted_s: Floats
    run_s: Floats
    gpus: Floats
    first: int
    """The hour of the first value."""
    used: Floats
    """(N) GPUs in use at each full hour from `first` on."""

    @property
    def end(self) -> int:
        """The hour after the last value."""
        return self.first + len(self.used)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A forecast and what came."""

    forecast: Forecast
    actual: Floats
    """(H)."""
    before: Floats
    """The history at the origin."""


@dataclass(slots=True)
class Replayed:
    """What a replay gave."""

    judged: list[Judged] = field(default_factory=list)
    fit_s: list[float] = field(default_factory=list)
    """Seconds that each fit took."""
    forecast_s: list[float] = field(default_factory=list)
    """Seconds that each forecast of one series took."""


def trace_of(name: str, jobs: Sequence[RawJob]) -> Trace:
    """The trace of a cluster."""
    submitted, run, gpus = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    ends = submitted + run
    first = int(submitted.min() // STEP_S)
    last = math.ceil(float(ends.max()) / STEP_S) // DAY * DAY
    hours = STEP_S * np.arange(first, max(last, first + 1), dtype=np.float64)
    used = _up_to(submitted, gpus, hours) - _up_to(ends, gpus, hours)
    return Trace(Key(name, KIND), submitted, run, gpus, first, used)


def known_at(trace: Trace, hour: int) -> Demand:
    """What is known of a cluster at a full hour. Nothing here depends on what comes later."""
    at_s = hour * STEP_S
    mine = trace.submitted_s <= at_s
    age, run = at_s - trace.submitted_s[mine], trace.run_s[mine]
    jobs = Jobs(trace.gpus[mine], age, np.minimum(age, run), run <= age)
    return Demand(trace.key, at_s, trace.used[: hour - trace.first + 1], jobs)


def replay(
    traces: Sequence[Trace],
    forecaster: Forecaster,
    *,
    origins: int,
    clock: Clock,
    tick: Callable[[], None] = lambda: None,
) -> Replayed:
    """Forecasts of the last `origins` days of each trace that have the whole horizon after them."""
    found = Replayed()
    judged = {trace.key: _origins(trace, forecaster.horizon, origins) for trace in traces}
    for hour in looks(traces):
        there = [trace for trace in traces if trace.first <= hour < trace.end]
        demands = {trace.key: known_at(trace, hour) for trace in there}
        forecaster.observe(demands.values())
        if (hour + 1) % DAY == 0:
            _fit(forecaster, hour * STEP_S, found, clock=clock)
            made = list(_forecasts(forecaster, demands, found, clock=clock))
            forecaster.keep(made)
            found.judged += _judged(there, made, judged, horizon=forecaster.horizon, hour=hour)
        tick()
    return found


def looks(traces: Sequence[Trace]) -> range:
    """The hours at which the forecaster looks; those before midnights are among them."""
    first = min(trace.first for trace in traces) // LOOK * LOOK
    return range(first + LOOK - 1, max(trace.end for trace in traces), LOOK)


def _up_to(at_s: Floats, amount: Floats, hours: Floats) -> Floats:
    """(N) sum of what is at or before each of N times."""
    order = np.argsort(at_s, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(amount[order])])
    return np.asarray(sums[np.searchsorted(at_s[order], hours, side="right")], dtype=float)


def _origins(trace: Trace, horizon: int, origins: int) -> range:
    """Hours: the last ones before a midnight with a horizon of values after them."""
    last = (trace.end - horizon) // DAY * DAY - 1
    return range(max(last - DAY * (origins - 1), trace.first + WARM - 1), last + 1)


def _fit(forecaster: Forecaster, at_s: float, found: Replayed, *, clock: Clock) -> None:
    if not forecaster.is_due(at_s):
        return
    began = clock.monotonic()
    lesson = forecaster.lesson(at_s)
    forecaster.use(lesson.fit(), lesson)
    found.fit_s.append(clock.monotonic() - began)


def _forecasts(
    forecaster: Forecaster, demands: Mapping[Key, Demand], found: Replayed, *, clock: Clock
) -> Iterator[Forecast]:
    for demand in demands.values():
        if len(demand.history) >= WARM:
            began = clock.monotonic()
            yield forecaster.forecast(demand)
            found.forecast_s.append(clock.monotonic() - began)


def _judged(
    traces: Sequence[Trace],
    made: Sequence[Forecast],
    judged: Mapping[Key, range],
    *,
    horizon: int,
    hour: int,
) -> Iterator[Judged]:
    by_key = {trace.key: trace for trace in traces}
    for forecast in made:
        origins = judged[forecast.key]
        if hour in origins and (hour + 1) % DAY == 0:
            trace = by_key[forecast.key]
            place = hour + 1 - trace.first
            yield Judged(forecast, trace.used[place : place + horizon], trace.used[:place])
