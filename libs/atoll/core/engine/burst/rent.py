"""Whether a job is worth an instance: its risk of being late here against what renting costs.

Rent if P(local start after the latest safe start) x penalty > cost + egress. What is rented too
late averts nothing. Once rented for, the advantage has to be lost by a margin before it is
given back, so that a forecast that wavers does not make instances come and go.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from atoll.core.model.errors import FieldViolation, InvalidInput


@dataclass(frozen=True, slots=True)
class Offer:
    """Capacity that could be rented for a job. Dollars, times in seconds from now."""

    ready_s: float
    """Booted, with data there."""
    cost: float
    """For as long as the job is expected to hold it."""
    egress: float = 0.0
    """For moving the job's data."""


@dataclass(frozen=True, slots=True)
class Rent:
    """The decision and what it rests on."""

    rent: bool
    late_chance: float
    """Of a start here after the latest safe one."""
    averted: float
    """Dollars of penalty that renting is expected to save."""
    price: float
    """Cost and egress."""


def decide_rent(
    local_starts_s: Sequence[float],
    offer: Offer,
    *,
    latest_s: float,
    penalty: float,
    held: bool = False,
    margin: float = 0.2,
) -> Rent:
    """Whether to rent, from equally likely forecasts of the start here.

    `latest_s`: latest safe start; `held`: it is rented already, then it is kept until what is
    averted falls below (1 - margin) x price. Raises InvalidInput without a forecast.
    """
    _check(local_starts_s, penalty, margin)
    late = sum(start_s > latest_s for start_s in local_starts_s) / len(local_starts_s)
    averted = late * penalty if offer.ready_s <= latest_s else 0.0
    price = offer.cost + offer.egress
    asked = price * (1 - margin) if held else price
    return Rent(averted > asked, late, averted, price)


def _check(starts_s: Sequence[float], penalty: float, margin: float) -> None:
    if not starts_s:
        raise InvalidInput((FieldViolation("local_starts_s", "a forecast is needed"),))
    if penalty < 0:
        raise InvalidInput((FieldViolation("penalty", "give 0 or more"),))
    if not 0 <= margin < 1:
        raise InvalidInput((FieldViolation("margin", "give a part of one"),))
