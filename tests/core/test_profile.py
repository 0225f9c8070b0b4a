"""Profiles against a brute force that looks at every second."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.engine.timeline.profile_kernels import Steps, add, find_hole, fits_at, of_ends, trim

END = 40
"""Nothing changes after this second."""
Rect = tuple[int, int, int]


def rects(least: int = -3) -> st.SearchStrategy[list[Rect]]:
    one = st.tuples(st.integers(0, END), st.integers(1, 12), st.integers(least, 3))
    return st.lists(one, max_size=12)


def made(free: int, changes: list[Rect]) -> tuple[Steps, list[int]]:
    """A profile, and the same by the second."""
    room = 2 * len(changes) + 4
    steps = Steps(np.zeros(room), np.zeros(room, np.int64), np.zeros(1, np.int64))
    of_ends(steps, free, np.zeros(0), np.zeros(0, np.int64), 0.0)
    seconds = [free] * (2 * END)
    for start, length, amount in changes:
        add(steps, start, start + length, amount)
        for second in range(start, min(start + length, len(seconds))):
            seconds[second] += amount
    return steps, seconds


@given(free=st.integers(0, 6), changes=rects())
def test_heights_are_sums_of_rectangles(free: int, changes: list[Rect]) -> None:
    steps, seconds = made(free, changes)
    assert levels(steps) == seconds
    assert (np.diff(steps.at[: steps.size[0]]) > 0).all()


@given(
    free=st.integers(0, 6),
    changes=rects(),
    need=st.integers(0, 7),
    length=st.integers(0, 15),
    earliest=st.integers(0, END),
)
def test_the_hole_is_the_earliest(
    *, free: int, changes: list[Rect], need: int, length: int, earliest: int
) -> None:
    steps, seconds = made(free, changes)
    fitting = [
        start
        for start in range(earliest, len(seconds) - 15)
        if all(level >= need for level in seconds[start : start + max(1, length)])
    ]
    assert find_hole(steps, need, length, earliest) == (fitting[0] if fitting else math.inf)
    assert fits_at(steps, need, length, earliest) == (earliest in fitting)


@given(free=st.integers(0, 6), changes=rects(), now=st.integers(0, END))
def test_trimming_changes_no_height(free: int, changes: list[Rect], now: int) -> None:
    steps, seconds = made(free, changes)
    trim(steps, now)
    assert steps.at[0] == now
    assert levels(steps)[now:] == seconds[now:]


@given(
    free=st.integers(-2, 4),
    ends=st.lists(st.tuples(st.integers(-5, END), st.integers(1, 4)), max_size=12),
)
def test_what_should_have_ended_still_runs_now(free: int, ends: list[tuple[int, int]]) -> None:
    ends.sort()
    room = len(ends) + 1
    steps = Steps(np.zeros(room), np.zeros(room, np.int64), np.zeros(1, np.int64))
    times, amounts = np.array([e[0] for e in ends], float), np.array([e[1] for e in ends], np.int64)
    of_ends(steps, free, times, amounts, 0.0)
    assert steps.free[0] == free
    for second in range(1, END + 2):
        assert levels(steps)[second] == free + sum(n for end, n in ends if end <= second)


def levels(steps: Steps) -> list[int]:
    at = steps.at[: steps.size[0]]
    where = np.searchsorted(at, np.arange(2 * END), side="right") - 1
    return [int(steps.free[i]) if i >= 0 else 0 for i in where]
