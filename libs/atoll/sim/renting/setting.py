"""What a comparison is made of: a cluster, its market, its budget, and the rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atoll.core.engine.burst.broker.ground import USUAL_LATE_S, Options
from atoll.core.model.burst import MICROS, Budget, BurstPolicy
from atoll.sim.readers.elasticflow_raw import RawJob
from atoll.sim.readers.spot import SpotWindow, read_windows
from atoll.sim.renting.brokering import Broker
from atoll.sim.renting.jobs import NODE_DEVICES, Work, capacity_of, wanted_at, work_of
from atoll.sim.renting.machines import Purse
from atoll.sim.renting.market import ON_DEMAND, offers_of, supply_of
from atoll.sim.renting.outlooks import Outlooks
from atoll.sim.renting.play import Rule
from atoll.sim.renting.reactive import Reactive
from atoll.sim.renting.world import World

ZONES: Final = ("us-west-2a", "us-west-2b")
PEAK: Final = 0.99
"""The budget buys on demand what is missing at this quantile of the demand."""
AFTER_S: Final = 90 * 86_400.0
"""The market is known for so long after the last submit."""
OURS: Final = "broker"
PEERS: Final = ("reactive_10_min", "reactive_5_min")
OPTIONS: Final = Options(late_s=USUAL_LATE_S, again_s=60.0)
"""Those of the service where nobody has set anything, but for one: what never boots is tried again
as soon as what was taken back. A job is late after the ten minutes after which the slower peer
begins to rent."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What can be set."""

    capacity_quantile: float
    per_hour: float
    """Dollars; 0: what is missing at the peak, on demand."""
    hour_of_delay: float
    """Dollars per device."""
    error: float
    """Deviation of the logarithm of what users expect over what comes."""
    seed: int
    forecast: bool = True


@dataclass(frozen=True, slots=True)
class Setting:
    """One cluster."""

    work: Work
    capacity: int
    per_hour: int
    """Micro-dollars."""
    windows: tuple[SpotWindow, ...]
    wish: Wish

    def world(self) -> World:
        """A new one; all are alike."""
        offers, seed = offers_of(ZONES), self.wish.seed
        seconds = float(self.work.submitted_s[-1]) + AFTER_S
        supply = supply_of(self.windows, offers, seconds=seconds, seed=seed)
        return World(self.work, self.capacity, offers, supply, Purse(self.per_hour), seed)

    def rules(self) -> Mapping[str, Callable[[], Rule]]:
        """By name, ours first."""
        return {
            OURS: self._broker,
            PEERS[0]: lambda: Reactive(600.0, 600.0),
            PEERS[1]: lambda: Reactive(300.0, 300.0),
        }

    def _broker(self) -> Rule:
        policy = BurstPolicy(
            None,
            allowed=True,
            budget=Budget(self.per_hour),
            hour_of_delay=round(self.wish.hour_of_delay * MICROS),
        )
        outlooks = Outlooks(self.wish.seed) if self.wish.forecast else None
        return Broker(policy, outlooks, OPTIONS)


def setting_of(jobs: Sequence[RawJob], windows: Sequence[SpotWindow], wish: Wish) -> Setting:
    """A cluster that is somewhat smaller than its peaks."""
    work = work_of(jobs, error=wish.error, seed=wish.seed)
    capacity = capacity_of(work, wish.capacity_quantile)
    missing = max(NODE_DEVICES, round(wanted_at(work, PEAK)) - capacity)
    per_hour = round(wish.per_hour * MICROS) or missing * ON_DEMAND
    return Setting(work, capacity, per_hour, tuple(windows), wish)


def windows_in(folder: Path) -> list[SpotWindow]:
    """Those of `spot`, in the folder of the traces."""
    return read_windows(folder / "spot" / "windows.jsonl.gz")
