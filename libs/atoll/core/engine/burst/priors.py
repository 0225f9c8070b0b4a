"""How spot capacity comes and goes, fitted on public traces.

The chance that a zone turns, up to down or down to up, within ten minutes is logistic in how
long it has been as it is and in the share of time that it is up. A zone is never judged by what
was fitted on itself: `prior_for` looks for one that was fitted elsewhere.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from atoll.core.engine.burst.watch import Seen

TURN_S: Final = 600.0
"""Within so long a turn has the fitted chance."""
NEVER: Final = 1e-12
"""The least chance of a turn."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Weights of the log odds of a turn within TURN_S; `age` is log2(run / TURN_S)."""

    one: float
    age: float
    fresh: float
    """Of a run that is not older than TURN_S."""
    share: float
    age_share: float


@dataclass(frozen=True, slots=True)
class Prior:
    """Turns from down to up and from up to down, and the zones on which they were fitted."""

    rise: Turn
    fall: Turn
    fitted_on: frozenset[str] = frozenset()


EAST: Final = Prior(
    rise=Turn(-1.625, -0.397, 0.387, 0.579, 0.084),
    fall=Turn(-0.554, -0.416, 0.049, -0.982, -0.064),
    fitted_on=frozenset(f"us-east-{zone}_v100_1" for zone in ("1a", "1c", "1d", "1f", "2a", "2b")),
)
WEST: Final = Prior(
    rise=Turn(-1.310, -0.486, 0.710, 1.248, -0.069),
    fall=Turn(0.225, -0.527, -0.004, -1.975, 0.200),
    fitted_on=frozenset(
        f"us-west-2{zone}_{kind}" for zone in "ab" for kind in ("k80_1", "k80_8", "v100_8")
    ),
)
PRIORS: Final = {"east": EAST, "west": WEST}


def prior_for(zones: Iterable[str]) -> Prior:
    """The first prior that was fitted on none of these zones; else the first one."""
    asked = frozenset(zones)
    return next((prior for prior in PRIORS.values() if not prior.fitted_on & asked), EAST)


def turn_chance(prior: Prior, seen: Seen, within_s: float, *, lean: float = 0.0) -> float:
    """How likely the zone turns within so many seconds.

    `lean` makes rises more likely and falls less: it is added to the log odds of the former and
    taken from those of the latter.
    """
    turn = prior.fall if seen.up else prior.rise
    age = math.log2(max(seen.run_s / TURN_S, 1.0))
    fresh = turn.fresh if seen.run_s <= TURN_S else 0.0
    odds = turn.one + fresh + turn.age * age + (turn.share + turn.age_share * age) * seen.share
    odds += -lean if seen.up else lean
    stays = 1.0 / (1.0 + math.exp(odds))
    return max(NEVER, float(1.0 - stays ** (within_s / TURN_S)))
