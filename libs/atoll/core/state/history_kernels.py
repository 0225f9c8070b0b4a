"""How long jobs of an owner ran, and what that says of the next one.

An estimate is shrunk in three steps: what all jobs made of their requests, what
this owner's jobs did, what his jobs of the same form did. Each step counts as
much as there is to know, the latest runs most.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

SHORTEST_S: Final = 10.0
"""Shorter runs count as this long, as in the bounded slowdown."""
SEEN_S: Final = 30.0
"""A run that lasts for less than this tells nothing yet."""
ALL_RUNS: Final = 64
"""Runs of all owners that are remembered."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


Expected = tuple[float, float]
"""E[1 / max(run, 10 s)] in 1/s, and E[run] in s."""
_Sum = tuple[float, float, float]
"""Of weights, and of both with their weights."""


class History(NamedTuple):
    """The last R runs of each of U owners, in rings, and how all runs used their requests."""

    run: Floats
    """(U, R) seconds."""
    request: Floats
    """(U, R) seconds that it had asked for."""
    size: Ints
    """(U, R) devices, processors or nodes."""
    ended: Ints
    """(U) runs so far; the last R of them are there."""
    ratio: Floats
    """(ALL_RUNS) run / request of the last runs of anybody."""
    ratio_count: Ints
    """(1)."""


class Trust(NamedTuple):
    """How much each part of what is known counts."""

    runs: int
    """Of an owner, the last ones, at most."""
    fading: float
    """Weight of a run against the one after it."""
    fading_alike: float
    """The same among runs of the form that is asked for."""
    other_request: float
    """Weight of a run with another request, and with another size."""
    other_size: float
    everybody: float
    """Weight of all owners' runs together; so is the next, of one owner's, against his alike."""
    owner: float
    living: float
    """Weight of a run that is not over; it is taken to last `stretch` times as long as so far."""
    stretch: float


TRUST: Final = Trust(60, 0.97, 0.5, 0.3, 0.3, 1.0, 2.0, 0.0, 2.0)
"""As five logs of parallel machines have it."""


class Alive(NamedTuple):
    """Runs of an owner that are not over."""

    ran: Floats
    """(A) seconds so far."""
    request: Floats
    size: Ints


@njit(cache=True, nogil=True)
def note(history: History, owner: int, run: float, request: float, size: int) -> None:
    """A run is over."""
    at = history.ended[owner] % history.run.shape[1]
    history.run[owner, at] = run
    history.request[owner, at] = request
    history.size[owner, at] = size
    history.ended[owner] += 1
    history.ratio[history.ratio_count[0] % history.ratio.shape[0]] = run / max(request, 1.0)
    history.ratio_count[0] += 1


@njit(cache=True, nogil=True)
def expect(
    history: History, alive: Alive, living: int, owner: int, request: float, size: int, trust: Trust
) -> Expected:
    """What a job will do; the first `living` of `alive` count."""
    past, past_alike = _of_past(history, owner, request, size, trust)
    now, now_alike = _of_living(alive, living, request, size, trust)
    everybody = _of_all(history, request)
    of_owner = _mean(past, now, everybody, trust.everybody)
    return _mean(past_alike, now_alike, of_owner, trust.owner)


@njit(cache=True, nogil=True)
def expect_each(
    history: History, owner: Ints, request: Floats, size: Ints, trust: Trust, found: Floats
) -> None:
    """What many jobs will do, without a look at what is alive; `found`: (J, 2)."""
    nobody = Alive(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    for i in range(owner.shape[0]):
        found[i] = expect(history, nobody, 0, owner[i], request[i], size[i], trust)


@njit(cache=True, nogil=True)
def _of_past(
    history: History, owner: int, request: float, size: int, trust: Trust
) -> tuple[_Sum, _Sum]:
    every, alike = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    fresh, fresh_alike = 1.0, 1.0
    ring = history.run.shape[1]
    for back in range(min(history.ended[owner], trust.runs, ring)):
        at = (history.ended[owner] - 1 - back) % ring
        run = min(history.run[owner, at], request)
        weight = _alike(
            history.request[owner, at] == request, history.size[owner, at] == size, trust
        )
        if weight == 1.0:
            alike = _plus(alike, fresh_alike, run)
            fresh_alike *= trust.fading_alike
        every = _plus(every, fresh * weight, run)
        fresh *= trust.fading
    return every, alike


@njit(cache=True, nogil=True)
def _of_living(
    alive: Alive, living: int, request: float, size: int, trust: Trust
) -> tuple[_Sum, _Sum]:
    every, alike = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for i in range(living):
        if alive.ran[i] > SEEN_S:
            run = min(trust.stretch * alive.ran[i], request)
            weight = _alike(alive.request[i] == request, alive.size[i] == size, trust)
            if weight == 1.0:
                alike = _plus(alike, trust.living, run)
            every = _plus(every, trust.living * weight, run)
    return every, alike


@njit(cache=True, nogil=True)
def _plus(total: _Sum, weight: float, run: float) -> _Sum:
    return total[0] + weight, total[1] + weight / max(run, SHORTEST_S), total[2] + weight * run


@njit(cache=True, nogil=True)
def _mean(one: _Sum, other: _Sum, prior: Expected, weight: float) -> Expected:
    total = one[0] + other[0] + weight
    hurry = (one[1] + other[1] + weight * prior[0]) / total
    return hurry, max(1.0, (one[2] + other[2] + weight * prior[1]) / total)


@njit(cache=True, nogil=True)
def _alike(same_request: bool, same_size: bool, trust: Trust) -> float:
    weight = 1.0 if same_request else trust.other_request
    return weight if same_size else weight * trust.other_size


@njit(cache=True, nogil=True)
def _of_all(history: History, request: float) -> Expected:
    known = min(history.ratio_count[0], history.ratio.shape[0])
    if known == 0:
        return 1.0 / max(request, SHORTEST_S), request
    hurry, length = 0.0, 0.0
    for i in range(known):
        run = max(1.0, min(1.0, history.ratio[i]) * request)
        hurry += 1.0 / max(run, SHORTEST_S)
        length += run
    return hurry / known, length / known


def empty_history(owners: int, runs: int) -> History:
    """Of owners of whom nothing is known yet."""
    wide = (owners, runs)
    return History(
        run=np.zeros(wide),
        request=np.zeros(wide),
        size=np.zeros(wide, np.int64),
        ended=np.zeros(owners, np.int64),
        ratio=np.zeros(ALL_RUNS),
        ratio_count=np.zeros(1, np.int64),
    )
