"""MIG on arrays: where a profile costs the others least, worked out for all 512 states."""

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.mig import (
    ALL_PROFILES,
    MEDIA_BIT,
    PROFILE_INDEX,
    Layout,
    MigTable,
    Profile,
    legal_starts,
)

STATES: Final = 512
NO_START: Final = -1


class StateTables(NamedTuple):
    """By state (512) and profile (of ALL_PROFILES): where to put it, and at what cost."""

    start: NDArray[np.int8]
    """Best legal start, NO_START when there is none."""
    growth: NDArray[np.int16]
    """Growth of the fragmentation there."""
    mask: NDArray[np.int16]
    """Bits that placing it there takes, the media engine's included."""


@cache
def fragmentation(table: MigTable, layout: Layout = ()) -> NDArray[np.int16]:
    """F(mask), shape (256,): free slices that a profile cannot use, summed over the profiles."""
    whole = (1 << table.slices) - 1
    plain = [p for p in table.profiles if not p.media]
    masks = [[p.mask(s) for s in legal_starts(table, p, layout)] for p in plain]
    result = np.zeros(256, np.int16)
    for state in range(whole + 1):
        free = whole & ~state
        for options in masks:
            usable = 0
            for option in options:
                usable |= option if option & state == 0 else 0
            result[state] += (free & ~usable).bit_count()
    return result


@cache
def state_tables(table: MigTable, layout: Layout = ()) -> StateTables:
    """Best start, growth and mask of every profile in every state."""
    shape = (STATES, len(ALL_PROFILES))
    start = np.full(shape, NO_START, np.int8)
    growth = np.zeros(shape, np.int16)
    mask = np.zeros(shape, np.int16)
    cost = fragmentation(table, layout)
    whole = (1 << table.slices) - 1
    for profile in table.profiles:
        column = PROFILE_INDEX[profile.name]
        starts = legal_starts(table, profile, layout)
        for state in range(STATES):
            best = _best_start(profile, starts, state=state, cost=cost)
            if best is None or state & ~MEDIA_BIT > whole:
                continue
            bits = profile.mask(best)
            start[state, column] = best
            growth[state, column] = cost[(state | bits) & 255] - cost[state & 255]
            mask[state, column] = bits | (MEDIA_BIT if profile.media else 0)
    return StateTables(start, growth, mask)


def _best_start(
    profile: Profile, starts: tuple[int, ...], *, state: int, cost: NDArray[np.int16]
) -> int | None:
    if profile.media and state & MEDIA_BIT:
        return None
    free = [start for start in starts if profile.mask(start) & state == 0]
    # min keeps the first of equals, so the order of preference breaks ties.
    return min(free, key=lambda s: int(cost[(state | profile.mask(s)) & 255]), default=None)
