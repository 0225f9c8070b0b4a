"""Work flows into capacity in turn: every unit goes to the next job as soon as it is free.

That is a queue with as many servers as there are units, first come first served: more
work before a job never makes it earlier (J. Kiefer, J. Wolfowitz, "On the Theory of Queues
with Many Servers", 1955). Time is in buckets that grow with their distance.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.compiled import bare

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
BUCKETS: Final = 640
FIRST_S: Final = 5.0
"""Width of the first bucket; each is a part wider than the one before it."""
GROWTH: Final = 0.03
_NOTHING: Final = 1e-9


class Flow(NamedTuple):
    """The shown jobs in the order of their turns, and what jobs of their classes are."""

    jobs: Ints
    """(J) indices."""
    of: Ints
    """(J) class, by index."""
    place: Ints
    """(J) jobs of the class before it, by index."""
    after: Floats
    """(J) jobs that follow at once: itself, and half of those up to the next that is shown."""
    length: Floats
    """(C) seconds that a job runs."""


@bare
def flow_through(
    flow: Flow, avail: Floats, amount: Floats, need: Floats, done: Floats, start: Floats
) -> None:
    """Write to `start` (J) after how many seconds `need` (C) is free when a job's turn comes.

    `avail` (BUCKETS): what comes free when; it is used up. `amount`: (C) what a job of each class
    takes; classes that need 0 are passed over. `done`: (C) zeros, room to work in.
    """
    at = 0
    for job in flow.jobs:
        group = flow.of[job]
        due = flow.place[job] - done[group]
        if due > 0.0:
            at = _take(avail, at, due * amount[group], flow.length[group])
            done[group] += due
        if need[group] > 0.0:
            start[job] = _peek(avail, at, need[group])
        at = _take(avail, at, flow.after[job] * amount[group], flow.length[group])
        done[group] += flow.after[job]


@bare
def _take(avail: Floats, at: int, amount: float, length: float) -> int:
    """Let an amount flow in from bucket `at` on; the bucket where there is something left."""
    while amount > _NOTHING and at < BUCKETS - 1:
        width = edge(at + 1) - edge(at)
        # What ends within its bucket leaves room in it for more of its kind.
        turns = max(1.0, width / max(length, 1.0))
        taken = min(avail[at], amount / turns)
        avail[at] -= taken
        amount -= taken * turns
        back = bucket(edge(at) + length)
        avail[max(back, at + 1)] += taken
        if avail[at] <= _NOTHING:
            at += 1
    return at


@bare
def _peek(avail: Floats, at: int, need: float) -> float:
    while at < BUCKETS - 1:
        need -= avail[at]
        if need <= _NOTHING:
            return edge(at)
        at += 1
    return np.inf


@bare
def edge(number: int) -> float:
    """Seconds from now at which a bucket begins."""
    return float(FIRST_S * ((1.0 + GROWTH) ** number - 1.0) / GROWTH)


@bare
def bucket(after: float) -> int:
    """The first bucket that does not begin before so many seconds."""
    number = int(np.ceil(np.log1p(max(0.0, after) * GROWTH / FIRST_S) / np.log1p(GROWTH) - 1e-6))
    return min(BUCKETS - 1, max(0, number))


@bare
def fill(avail: Floats, after: Floats, amounts: Floats) -> None:
    """Add amounts that come free after so many seconds."""
    for i in range(after.shape[0]):
        avail[bucket(after[i])] += amounts[i]
