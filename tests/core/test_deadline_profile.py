"""The profile of free devices says what a plain list of seconds says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from atoll.core.engine.deadlines.profile_kernels import (
    Profile,
    enlarged,
    forget,
    lasts_until,
    profile_of,
    stays,
    step_at,
    take,
)

SPAN = 40
CAPACITY = 8
takes = st.lists(
    st.tuples(st.integers(0, SPAN), st.integers(0, SPAN), st.integers(-3, 3)), max_size=12
)
times = st.integers(0, SPAN - 1)


def both(parts: list[tuple[int, int, int]]) -> tuple[Profile, NDArray[np.int64]]:
    """The profile and the list: free devices by second; after the list nothing changes."""
    profile, plain = profile_of(CAPACITY, 64), np.full(SPAN + 1, CAPACITY)
    for start, end, devices in parts:
        take(profile, start, end, devices)
        plain[start:end] -= devices
    return profile, plain


@given(takes, times)
def test_free_devices_are_those_of_the_list(parts: list[tuple[int, int, int]], at: int) -> None:
    profile, plain = both(parts)
    assert profile.free[step_at(profile, at)] == plain[at]


@given(takes, times, st.integers(1, SPAN), st.integers(0, CAPACITY))
def test_what_stays_free_stays_free_in_the_list(
    parts: list[tuple[int, int, int]], at: int, seconds: int, devices: int
) -> None:
    profile, plain = both(parts)
    wanted = bool((plain[at : at + seconds] >= devices).all())
    assert stays(profile, step_at(profile, at), at + seconds, devices) == wanted


@given(takes, times, st.integers(1, CAPACITY))
def test_it_lasts_until_the_list_has_less(
    parts: list[tuple[int, int, int]], at: int, devices: int
) -> None:
    profile, plain = both(parts)
    if plain[at] < devices:
        return
    short = [second for second in range(at, SPAN) if plain[second] < devices]
    assert lasts_until(profile, step_at(profile, at), SPAN, devices) == min([*short, SPAN])


@given(takes, times)
def test_forgetting_the_past_and_growing_change_nothing_to_come(
    parts: list[tuple[int, int, int]], now: int
) -> None:
    profile, plain = both(parts)
    forget(profile, now)
    profile = enlarged(profile, 128)
    assert [profile.free[step_at(profile, t)] for t in range(now, SPAN)] == list(plain[now:SPAN])
    steps = int(profile.steps[0])
    assert (np.diff(profile.free[:steps]) != 0).all()
