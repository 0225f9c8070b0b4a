"""A hash map from ids to slots in two arrays: 12 bytes a place, where a dict takes 100."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

EMPTY = 0
"""No id is 0."""


@njit(cache=True, nogil=True)
def find(
    keys: NDArray[np.int64], slots: NDArray[np.int32], ids: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Slot of every id, -1 for those that are not there."""
    found = np.empty(ids.shape[0], np.int64)
    for i in range(ids.shape[0]):
        place = _place(keys, ids[i])
        found[i] = slots[place] if keys[place] == ids[i] else -1
    return found


@njit(cache=True, nogil=True)
def put(
    keys: NDArray[np.int64],
    slots: NDArray[np.int32],
    ids: NDArray[np.int64],
    values: NDArray[np.int64],
) -> None:
    """Enter ids; there must be room."""
    for i in range(ids.shape[0]):
        place = _place(keys, ids[i])
        keys[place] = ids[i]
        slots[place] = values[i]


@njit(cache=True, nogil=True)
def drop(keys: NDArray[np.int64], slots: NDArray[np.int32], ids: NDArray[np.int64]) -> None:
    """Remove ids that are there, closing the gap that each leaves in its chain."""
    last = keys.shape[0] - 1
    for i in range(ids.shape[0]):
        hole = _place(keys, ids[i])
        if keys[hole] == EMPTY:
            continue
        place = hole
        while True:
            place = (place + 1) & last
            if keys[place] == EMPTY:
                break
            home = _home(keys, keys[place])
            # A key may move back to the hole unless its home lies after the hole.
            if (place - home) & last >= (place - hole) & last:
                keys[hole] = keys[place]
                slots[hole] = slots[place]
                hole = place
        keys[hole] = EMPTY


@njit(cache=True, nogil=True)
def _home(keys: NDArray[np.int64], key: int) -> int:
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.int64(mixed >> np.uint64(32)) & (keys.shape[0] - 1))


@njit(cache=True, nogil=True)
def _place(keys: NDArray[np.int64], key: int) -> int:
    last = keys.shape[0] - 1
    place = _home(keys, key)
    while keys[place] != EMPTY and keys[place] != key:
        place = (place + 1) & last
    return place
