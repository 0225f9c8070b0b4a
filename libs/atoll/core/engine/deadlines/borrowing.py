"""Which running jobs without a promise grow onto devices that nobody needs for a while.

What they have above their least size is borrowed: they give it back as soon as
others wait for it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from atoll.core.engine.deadlines.book import ATOLL
from atoll.core.engine.deadlines.elastic import ElasticRun
from atoll.core.engine.deadlines.pools import Pool
from atoll.core.policies.interfaces import Objective

Spare = Callable[[Pool, float], int]
"""Devices of a pool that nobody will need for so many seconds."""
_Gain = Callable[[ElasticRun, tuple[int, int], float], float]
"""(run, from and to how many tasks, wall time): what it is worth; not above 0: nothing."""


def borrowers(
    runs: Iterable[ElasticRun],
    spare: Spare,
    *,
    now: float,
    objective: Objective = Objective.SPEED,
) -> Iterator[tuple[ElasticRun, int]]:
    """Runs that grow now, with their new number of tasks."""
    gain_of = _GAINS[objective]
    able = [run for run in runs if run.may_change(now) and _pays(run, now)]
    left = [spare(run.pool, run.hold_s) for run in able]
    size = [run.size for run in able]
    lent: Counter[Pool] = Counter()
    while True:
        # Lent step by step, so that one job does not take at once what others gain more by.
        options = [
            (*_best(run, size[at], left[at] - lent[run.pool], gain=gain_of, now=now), -at)
            for at, run in enumerate(able)
        ]
        gain, larger, at = max(options, default=(0.0, 0, 0))
        if gain <= 0:
            break
        lent[able[-at].pool] += (larger - size[-at]) * able[-at].each
        size[-at] = larger
    yield from ((run, new) for run, new in zip(able, size, strict=True) if new > run.size)


def _pays(run: ElasticRun, now: float) -> bool:
    """Whether it runs long enough for a change to be worth its pause."""
    return run.rate(run.size) > 0 and run.seconds(run.size, now) > run.hold_s


def _best(run: ElasticRun, size: int, spare: int, *, gain: _Gain, now: float) -> tuple[float, int]:
    """(what each device more brings, tasks) from a size on; no gain: it stays there."""
    best = (0.0, size)
    tasks, rate = size, run.rate(size)
    for larger, faster in run.sizes:
        if larger <= size:
            continue
        more = (larger - size) * run.each
        worth = (faster - rate) / (larger - tasks) / (rate / tasks)
        if more > spare or worth < ATOLL.knee:
            break
        best = max(best, (gain(run, (size, larger), now) / more, larger))
        tasks, rate = larger, faster
    return best


def _seconds_saved(run: ElasticRun, step: tuple[int, int], now: float) -> float:
    size, larger = step
    return run.seconds(size, now) - run.seconds(larger, now)


def _work_gained(run: ElasticRun, step: tuple[int, int], now: float) -> float:
    """Device-seconds of useful work that it brings until the next change, its pause counted in.

    A device-second is what a device does at the least size, where none is wasted.
    """
    size, larger = step
    until = _until(run, larger, now)
    # It stands still while it is resized, as long as it has not grown yet.
    pause = run.elastic.rescale_cost_s if size == run.size else 0.0
    return _device_s(run, (run.rate(larger) - run.rate(size)) * until - run.rate(larger) * pause)


def work_lost(run: ElasticRun, smaller: int, *, now: float) -> float:
    """The same that each device which it gives back costs, its pause counted in."""
    until, freed = _until(run, smaller, now), run.size - smaller
    less = (run.rate(run.size) - run.rate(smaller)) * until
    pause = run.rate(smaller) * run.elastic.rescale_cost_s
    return _device_s(run, less + pause) / (freed * run.each)


def _until(run: ElasticRun, size: int, now: float) -> float:
    return min(run.hold_s or math.inf, run.seconds(size, now))


def _device_s(run: ElasticRun, work: float) -> float:
    fewest, slowest = run.sizes[0]
    return work * fewest * run.each / slowest


_GAINS: Final[dict[Objective, _Gain]] = {
    Objective.SPEED: _seconds_saved,
    Objective.GOODPUT: _work_gained,
}
