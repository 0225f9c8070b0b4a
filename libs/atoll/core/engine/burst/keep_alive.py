"""For how long an idle instance is kept: rent or buy, with what is known of idle times.

Keeping costs by the second, ending costs a boot later (ski rental). Without knowledge the best
is to keep for as long as a boot costs: never above 2 times what one who knows the future pays.
With past idle times the limit of least mean cost is taken among those whose worst case is bounded
(as in Purohit, Svitkina, Kumar, NeurIPS'18: what is known may be wrong, within a ratio).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from atoll.core.model.errors import FieldViolation, InvalidInput

BREAK_EVEN_RATIO: Final = 2.0
FEW: Final = 5
"""With fewer idle times than this nothing is known."""


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """How long to keep an instance that has become idle."""

    seconds: float
    mean_cost: float
    """Dollars per idle time, over the given ones; 0 without any."""
    ratio: float
    """At most so many times the cost of one who knows the idle time, whatever it is."""


def keep_alive(
    idle_s: Sequence[float], *, boot_cost: float, idle_per_h: float, worst_ratio: float = 3.0
) -> KeepAlive:
    """The limit for an instance, from past idle times (seconds from idle to the next use).

    `boot_cost`: dollars of ending it and needing it again, the wait for it included.
    `worst_ratio`: 2 or more; at 2 what is known changes nothing. Raises InvalidInput.
    """
    _check(boot_cost, idle_per_h, worst_ratio)
    even_s = boot_cost / idle_per_h * 3600
    shortest_s, longest_s = even_s / (worst_ratio - 1), even_s * (worst_ratio - 1)
    limits = [even_s]
    if len(idle_s) >= FEW:
        inside = [each for each in idle_s if shortest_s < each < longest_s]
        limits += [shortest_s, longest_s, *inside]

    def mean_cost(limit_s: float) -> float:
        costs = [cost_of(x, limit_s, boot_cost=boot_cost, idle_per_h=idle_per_h) for x in idle_s]
        return sum(costs) / len(costs) if costs else 0.0

    seconds = min(limits, key=mean_cost)
    return KeepAlive(seconds, mean_cost(seconds), _ratio(seconds / even_s) if even_s else 1.0)


def cost_of(idle_s: float, limit_s: float, *, boot_cost: float, idle_per_h: float) -> float:
    """Dollars of one idle time under a limit; one that is just as long is still kept."""
    if idle_s <= limit_s:
        return idle_s / 3600 * idle_per_h
    return limit_s / 3600 * idle_per_h + boot_cost


def _ratio(part: float) -> float:
    """Worst case of a limit that is so large a part of the break-even: idle just beyond it."""
    return (part + 1) / min(part, 1.0)


def _check(boot_cost: float, idle_per_h: float, worst_ratio: float) -> None:
    if boot_cost < 0:
        raise InvalidInput((FieldViolation("boot_cost", "give 0 or more"),))
    if not idle_per_h > 0:
        raise InvalidInput((FieldViolation("idle_per_h", "give a price above 0"),))
    if worst_ratio < BREAK_EVEN_RATIO:
        raise InvalidInput((FieldViolation("worst_ratio", "no limit does better than 2"),))
