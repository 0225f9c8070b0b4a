"""One forecast of several: their median by weights, learnt from their errors at earlier origins.

A median is not thrown by one that goes wrong, which a mean is. Of equal weights it is the plain
median.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from atoll.core.engine.burst.demand.series import Floats, Key

FADE_S: Final = 14 * 86400.0
KEEN: Final = 3.0
"""How fast the weight falls with the error relative to the best one's."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Faded sums of errors, in scales."""

    at_s: float
    weight: float
    error: float


@dataclass(slots=True)
class Weights:
    """What is known of the errors of each model on each series."""

    losses: dict[tuple[Key, str], Loss] = field(default_factory=dict)

    def learn(self, key: Key, name: str, error: float, *, at_s: float) -> None:
        """Takes the mean absolute error of one origin in, in scales of the series."""
        old = self.losses.get((key, name), Loss(at_s, 0.0, 0.0))
        fade = np.exp(min(0.0, old.at_s - at_s) / FADE_S)
        new = Loss(at_s, float(old.weight * fade) + 1.0, float(old.error * fade) + error)
        self.losses[key, name] = new

    def of(self, key: Key, names: list[str]) -> Floats:
        """(M) weights of models, 1 in sum; a model without errors is taken for an average one."""
        known = [self.losses.get((key, name)) for name in names]
        means = [loss.error / loss.weight for loss in known if loss]
        if not means:
            return np.full(len(names), 1 / len(names))
        usual = max(float(np.mean(means)), 1e-9)
        errors = np.array([loss.error / loss.weight if loss else usual for loss in known])
        found = np.exp(-KEEN * (errors - errors.min()) / usual)
        return np.asarray(found / found.sum(), dtype=float)

    def to_json(self) -> list[list[Any]]:
        """All of it, of plain values."""
        return [
            [*key, name, loss.at_s, loss.weight, loss.error]
            for (key, name), loss in self.losses.items()
        ]


def weights_from_json(kept: list[list[Any]]) -> Weights:
    """What to_json gave."""
    return Weights({
        (Key(queue, kind), name): Loss(float(at_s), float(weight), float(error))
        for queue, kind, name, at_s, weight, error in kept
    })


def combined(forecasts: Mapping[str, Floats], weights: Floats) -> Floats:
    """(H) weighted median at each step of some forecasts (H), weights in the same order."""
    table = np.stack(list(forecasts.values()))
    order = np.argsort(table, axis=0, kind="stable")
    heap = np.cumsum(weights[order], axis=0)
    sorted_table = np.take_along_axis(table, order, axis=0)
    # Halfway between two where the weights part exactly there.
    low = np.argmax(heap >= 0.5 - 1e-9, axis=0)
    high = np.argmax(heap > 0.5 + 1e-9, axis=0)
    steps = np.arange(table.shape[1])
    return np.asarray((sorted_table[low, steps] + sorted_table[high, steps]) / 2, dtype=float)
