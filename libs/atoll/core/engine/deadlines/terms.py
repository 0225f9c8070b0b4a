"""A job with a deadline, what it is told, and how careful the book is."""

from dataclasses import dataclass
from typing import Final

from atoll.core.model.deadline import Chance

FOR_EVER: Final = 1 << 40
"""Seconds; longer than anything runs."""
HOLD_PER_COST: Final = 10
"""At most one change of size in so many times its cost."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The admission answer. `earliest`: whole seconds at which it could be through."""

    chance: Chance
    earliest: int


@dataclass(frozen=True, slots=True)
class DeadlineJob:
    """What the book has to know of a job. Times in whole seconds of one clock."""

    id: int
    deadline: int
    sizes: tuple[tuple[int, float], ...]
    """(devices, work per second), rising in both; one entry: a rigid gang."""
    work: float
    cost: int = 0
    """Nothing is done for so long after a start and after each change of size."""
    begin: int = 0
    """It does not start before."""

    @property
    def rigid(self) -> bool:
        """Started once, it keeps its one size until it ends."""
        return len(self.sizes) == 1


def useful(throughput: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
    """The sizes that are faster than every smaller one: the knee is the last of them."""
    kept: list[tuple[int, float]] = []
    for devices, rate in sorted(throughput):
        if rate > (kept[-1][1] if kept else 0.0):
            kept.append((devices, rate))
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class Taken:
    """Devices that are not the book's, from `start` until `end`."""

    start: int
    end: int
    devices: int


@dataclass(frozen=True, slots=True)
class BookPolicy:
    """How plans are made."""

    how: int
    """CHEAPEST, KEEP or SMALLEST of the plan kernels: what a plan made anew looks like."""
    knee: float = 0.5
    """Spare devices go to a job while each does this part of what those it has do on average."""
    reserve: float = 0.25
    """Share of the devices that is not lent, for those who come next."""
    replans: bool = False
    """All plans are made anew at each event, without a thought of what changes cost."""


@dataclass(frozen=True, slots=True)
class Change:
    """A job's size from `time` on; 0: it holds nothing."""

    job: int
    time: int
    devices: int
