"""Times that pass on a clock that may jump: database time after a failover, or an operator's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LEAST_S: Final = 5.0
"""Clocks that differ by less have not jumped."""
KEPT: Final = 8


@dataclass(frozen=True, slots=True)
class Jump:
    """A clock went forward without that time passing."""

    at: float
    """By that clock, after the jump."""
    by_s: float


def watched(
    jumps: Sequence[Jump], *, passed_s: float, before: float, now: float
) -> tuple[Jump, ...]:
    """Jumps after another look at the clock, when really (by a steady one) so much has passed.

    A clock that went back takes jumps back as far as it went.
    """
    back = [Jump(min(each.at, now), each.by_s - max(0.0, each.at - now)) for each in jumps]
    kept = [each for each in back if each.by_s > 0]
    by_s = now - before - passed_s
    if by_s > LEAST_S:
        kept.append(Jump(now, by_s))
    return tuple(kept[-KEPT:])


def since(at: float, now: float, jumps: Sequence[Jump]) -> float:
    """Seconds that really passed; 0 when the clock went back behind it."""
    return max(0.0, now - at - sum(jump.by_s for jump in jumps if at < jump.at <= now))


def is_due(at: float, now: float, jumps: Sequence[Jump]) -> bool:
    """Whether a time has come, and not by a jump alone."""
    return now >= at + sum(jump.by_s for jump in jumps if jump.at - jump.by_s < at <= jump.at)
