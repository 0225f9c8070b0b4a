"""Who goes first in time, and who may hold a reservation.

The product's order is by urgency: what a second of waiting costs (1 / run time)
over what the job takes (run time x size), both expected of its owner's past
(Smith's rule; the cost is that of the bounded slowdown). A doubling of urgency is
worth some seconds of waiting. How many, and how long a job may wait before it is
aged, follows the largest backlog that the pool has had: nothing is in hours.
"""

import math
from typing import Final, NamedTuple

from numba import njit

from atoll.core.state.history_kernels import TRUST, Expected, Trust

DAY_S: Final = 86_400.0
LEAST_BACKLOG_S: Final = 3600.0
"""A pool that has seen nothing is taken to have had this much."""
MOST_RESERVATIONS: Final = 32


class Urgency(NamedTuple):
    """Exponents of what urgency is made of, and what it is worth."""

    hurry: float
    length: float
    size: float
    doubling: float
    """Seconds of waiting that a doubling is worth, per second of the largest backlog."""
    scout: float
    """The first of n alike of which nothing is known is n to this power as urgent."""
    scouts: int
    """How many of them may run at a time."""


class Ageing(NamedTuple):
    """When a job has waited too long, and what happens then."""

    cap: float
    """So many times the largest backlog a job waits before it is aged."""
    wide: float
    """By this part less, for a job that needs the whole pool: it takes long to make room."""
    promoted: int
    """So many aged jobs go before all others, the oldest first."""
    beyond: float
    """Those that have waited this many times the cap go before all others in any case."""
    half_life_s: float
    """In which the largest backlog is forgotten by half."""


class TimeOrder(NamedTuple):
    """A policy of time, in numbers."""

    reservations: int
    """Blocked jobs that hold one, per pool."""
    only_aged: bool
    """True: of the blocked jobs only the aged ones hold a reservation."""
    strict: bool
    """True: nobody overtakes the first that is blocked."""
    keeps: bool
    """True: every job holds a reservation from its submit on, and moves only forward."""
    by_urgency: bool
    """False: in the order of submits."""
    urgency: Urgency
    ageing: Ageing
    trust: Trust


URGENCY: Final = Urgency(1.0, 1.0, 1.0, 0.14, 1.0, 2)
AGEING: Final = Ageing(1.2, 0.5, 1, math.inf, 60 * DAY_S)

_IN_ORDER: Final = TimeOrder(1, False, False, False, False, URGENCY, AGEING, TRUST)
TIME_ORDERS: Final[dict[str, TimeOrder]] = {
    "fcfs": _IN_ORDER._replace(reservations=0, strict=True),
    "easy": _IN_ORDER,
    "conservative": _IN_ORDER._replace(keeps=True),
    "atoll": _IN_ORDER._replace(by_urgency=True),
}


@njit(cache=True, nogil=True)
def doublings(urgency: Urgency, expected: Expected, size: int) -> float:
    """Urgency as a power of two."""
    hurry, length = expected
    return (
        urgency.hurry * math.log2(hurry)
        - urgency.length * math.log2(length)
        - urgency.size * math.log2(float(size))
    )
