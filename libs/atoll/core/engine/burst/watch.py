"""What has been seen of spot capacity: how long a zone has been as it is, and how often it is up.

The share of time that a zone is up fades with a half-life, and begins with what is usual.
"""

from dataclasses import dataclass
from typing import Final

HALF_LIFE_S: Final = 36 * 3600.0
USUAL_SHARE: Final = 0.55
USUAL_WEIGHT_S: Final = 3600.0
"""What is usual counts as if it had been seen for so long."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a zone, the present tick included. Times in seconds."""

    up: bool
    run_s: float
    """For how long it has been up, or down."""
    up_s: float
    """Faded."""
    seen_s: float
    """Faded."""

    @property
    def share(self) -> float:
        """Part of the time that it is up."""
        return self.up_s / self.seen_s


@dataclass(frozen=True, slots=True)
class Market:
    """All zones, and whether any of them is up as if that were a zone."""

    zones: tuple[Seen, ...]
    any: Seen


def look(before: Market | None, up: tuple[bool, ...], tick_s: float) -> Market:
    """The market after another look at it: which zones are up in the tick that begins."""
    if before is None:
        return Market(tuple(first(each, tick_s) for each in up), first(any(up), tick_s))
    zones = tuple(again(*pair, tick_s) for pair in zip(before.zones, up, strict=True))
    return Market(zones, again(before.any, any(up), tick_s))


def first(up: bool, tick_s: float) -> Seen:
    """A zone that has never been looked at before."""
    up_s = USUAL_SHARE * USUAL_WEIGHT_S
    return _added(up, tick_s, Seen(up, 0.0, up_s, USUAL_WEIGHT_S))


def again(seen: Seen, up: bool, tick_s: float) -> Seen:
    """A zone after one more look."""
    run_s = seen.run_s if up == seen.up else 0.0
    return _added(up, tick_s, Seen(up, run_s, seen.up_s, seen.seen_s))


def _added(up: bool, tick_s: float, seen: Seen) -> Seen:
    faded = 0.5 ** (tick_s / HALF_LIFE_S)
    up_s = seen.up_s * faded + (tick_s if up else 0.0)
    return Seen(up, seen.run_s + tick_s, up_s, seen.seen_s * faded + tick_s)
