"""What the service's forecaster says of demand that is to come, as excess over the own cluster."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from atoll.burst.forecasting.forecaster import Forecaster
from atoll.core.engine.burst.broker.ground import Outlook
from atoll.core.engine.burst.demand.forecast import Forecast
from atoll.core.engine.burst.demand.series import STEP_S, Demand, Floats, Jobs, Key
from atoll.sim.renting.market import KIND
from atoll.sim.renting.world import World

KEY: Final = Key("default", KIND)
LOOK_H: Final = 3
"""Hours between two forecasts."""
FIT_H: Final = 7 * 24
"""Hours between two fits of what is learnt."""
SAMPLES: Final = 64
FEWEST: Final = 2
"""Full hours that are known before the first forecast."""


@dataclass(slots=True)
class Outlooks:
    """Watches a world at full hours, and looks ahead every few."""

    seed: int
    forecaster: Forecaster = field(init=False)
    history: list[float] = field(default_factory=list)
    """Devices in use or asked for at each full hour from the first on."""
    first: int = 0
    latest: Forecast | None = None
    _futures: Floats = field(default_factory=lambda: np.zeros((SAMPLES, 0)))
    _fitted: int = 0

    def __post_init__(self) -> None:
        self.forecaster = Forecaster(self.seed)

    def look(self, world: World, hour: int) -> None:
        """It is a full hour: all that was submitted up to now is known, and what has ended."""
        if not self.history:
            self.first = hour
        self.history.append(float(wanted(world)))
        if len(self.history) < FEWEST or hour % LOOK_H:
            return
        demand = Demand(KEY, hour * STEP_S, np.array(self.history), jobs_of(world))
        self.forecaster.observe([demand])
        self._fit(hour)
        self.latest = self.forecaster.forecast(demand)
        self._futures = _futures(self.latest)
        self.forecaster.keep([self.latest])

    def now(self, world: World) -> tuple[Outlook, ...]:
        """From now on: the hours that have begun since the forecast are cut off."""
        if self.latest is None:
            return ()
        gone = max(0, int((world.now - self.latest.at_s) // STEP_S))
        excess = self._futures[:, gone:] - world.capacity
        return (Outlook(KIND, None, STEP_S, excess),) if excess.shape[1] else ()

    def _fit(self, hour: int) -> None:
        if hour - self._fitted >= FIT_H and self.forecaster.is_due(hour * STEP_S):
            lesson = self.forecaster.lesson(hour * STEP_S)
            self.forecaster.use(lesson.fit(), lesson)
            self._fitted = hour


def wanted(world: World) -> int:
    """Devices in use or asked for."""
    return sum(world.devices[job] for job in (*world.waiting, *world.local, *world.where))


def jobs_of(world: World) -> Jobs:
    """All that were submitted up to now."""
    work, now = world.work, world.now
    count = int(np.searchsorted(work.submitted_s, now, side="right"))
    age = now - work.submitted_s[:count]
    over = np.array(world.over[:count], dtype=bool)
    ran = np.array([world.ran_s(job) for job in range(count)])
    return Jobs(work.devices[:count].astype(float), age, ran, over)


def _futures(forecast: Forecast) -> Floats:
    """(SAMPLES, H) demand that is high or low throughout."""
    levels = (np.arange(SAMPLES) + 0.5) / SAMPLES
    return np.stack([forecast.at(level) for level in levels])
