"""Which waiting jobs start on the own cluster: in turn, and others in holes (EASY backfilling).

The first that does not fit is promised the time at which enough will be free by what is
expected; one behind it may start if it is over by then, or takes only what is left then.
"""

from collections.abc import Callable, Iterator, Sequence

Ends = Callable[[], Sequence[tuple[float, int]]]
"""(expected end, devices) of what runs."""


def starting(
    waiting: Sequence[tuple[int, int, float]], *, free: int, now: float, ends: Ends
) -> Iterator[int]:
    """The jobs that start now, of (job, devices, expected seconds) in their order."""
    queue, begun = iter(waiting), list[tuple[float, int]]()
    for job, devices, expected in queue:
        if devices > free:
            later = sorted([*ends(), *begun]) if free > 0 else ()
            yield from _behind(queue, free, devices, now=now, ends=later)
            return
        free -= devices
        begun.append((now + expected, devices))
        yield job


def _behind(
    queue: Iterator[tuple[int, int, float]],
    free: int,
    need: int,
    *,
    now: float,
    ends: Sequence[tuple[float, int]],
) -> Iterator[int]:
    if free <= 0:
        return
    promised, spare = _promise(free, need, ends)
    for job, devices, expected in queue:
        fits_in = now + expected <= promised
        if devices <= free and (fits_in or devices <= spare):
            free -= devices
            spare -= 0 if fits_in else devices
            yield job
        if free <= 0:
            return


def _promise(free: int, need: int, ends: Sequence[tuple[float, int]]) -> tuple[float, int]:
    """When the first has room, and what is left beside it then."""
    for at, devices in ends:
        free += devices
        if free >= need:
            return at, free - need
    raise AssertionError(f"a job of {need} devices does not fit the cluster")
