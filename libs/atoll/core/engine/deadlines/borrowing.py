"""Which running jobs without a promise grow onto devices that nobody needs for a while.

What they have above their least size is borrowed: they give it back as soon as
others wait for it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from atoll.core.engine.deadlines.book import ATOLL
from atoll.core.engine.deadlines.elastic import ElasticRun
from atoll.core.engine.deadlines.pools import Pool

Spare = Callable[[Pool, float], int]
"""Devices of a pool that nobody will need for so many seconds."""


def borrowers(
    runs: Iterable[ElasticRun], spare: Spare, *, now: float
) -> Iterator[tuple[ElasticRun, int]]:
    """Runs that grow now, with their new number of tasks."""
    able = [run for run in runs if run.may_change(now) and _pays(run, now)]
    left = [spare(run.pool, run.hold_s) for run in able]
    size = [run.size for run in able]
    lent: Counter[Pool] = Counter()
    while True:
        # Lent step by step, so that one job does not take at once what others gain more by.
        options = [
            (*_best(run, size[at], left[at] - lent[run.pool], now=now), -at)
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


def _best(run: ElasticRun, size: int, spare: int, *, now: float) -> tuple[float, int]:
    """(seconds that each device more saves, tasks) from a size on; no gain: it stays there."""
    best = (0.0, size)
    present = run.seconds(size, now)
    tasks, rate = size, run.rate(size)
    for larger, faster in run.sizes:
        if larger <= size:
            continue
        more = (larger - size) * run.each
        worth = (faster - rate) / (larger - tasks) / (rate / tasks)
        if more > spare or worth < ATOLL.knee:
            break
        best = max(best, ((present - run.seconds(larger, now)) / more, larger))
        tasks, rate = larger, faster
    return best
