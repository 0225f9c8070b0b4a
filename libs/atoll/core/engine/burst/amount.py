"""How much to rent: the newsvendor's quantile of the demand beyond what is there.

A unit too few costs `underage` (a job that waits), one too many `overage` (an idle instance);
the mean cost is least at the underage / (underage + overage) quantile. What is held stays as it
is while it lies within a band around that quantile; beyond, it becomes the best.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from atoll.core.model.errors import FieldViolation, InvalidInput


@dataclass(frozen=True, slots=True)
class Amount:
    """Units to hold from now on, and the best ones without regard to what is held."""

    hold: int
    best: int
    low: int
    """Lower edge of the band in which nothing changes."""
    high: int
    quantile: float


def amount_to_hold(
    excess: Sequence[int], *, underage: float, overage: float, held: int = 0, band: float = 0.1
) -> Amount:
    """The amount, from equally likely demands beyond what is there (below 0 counts as 0).

    `underage`, `overage`: dollars per unit over the time in question; `band`: half its width, in
    quantiles. Nothing is kept that no demand asks for. Raises InvalidInput.
    """
    _check(excess, underage, overage, band=band)
    ordered = sorted(max(0, each) for each in excess)
    level = underage / (underage + overage)
    best, low, high = (_at(ordered, level + shift) for shift in (0.0, -band, band))
    return Amount(held if low <= held <= high else best, best, low, high, level)


def mean_cost(excess: Sequence[int], amount: int, *, underage: float, overage: float) -> float:
    """Dollars that an amount is expected to cost."""
    costs = [
        underage * max(0, max(0, each) - amount) + overage * max(0, amount - max(0, each))
        for each in excess
    ]
    return sum(costs) / len(costs)


def _at(ordered: Sequence[int], level: float) -> int:
    """The smallest demand that at least this part of all does not exceed; 0 at level 0."""
    if level <= 0:
        return 0
    rank = math.ceil(level * len(ordered) - 1e-9)
    return ordered[min(max(rank, 1), len(ordered)) - 1]


def _check(excess: Sequence[int], underage: float, overage: float, *, band: float) -> None:
    if not excess:
        raise InvalidInput((FieldViolation("excess", "a forecast is needed"),))
    if underage < 0 or not overage > 0:
        raise InvalidInput((FieldViolation("underage", "give 0 or more, and overage above 0"),))
    if not 0 <= band < 1:
        raise InvalidInput((FieldViolation("band", "give a part of one"),))
