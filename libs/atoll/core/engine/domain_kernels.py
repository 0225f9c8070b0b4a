"""Sums over domains, compiled."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

NOWHERE = -1


@njit(cache=True, nogil=True)
def sum_up(
    domain: NDArray[np.int32], rooms: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Room of every group (G, D) in every domain, and the first row (D) with any, or NOWHERE.

    `domain`: (N) numbers below D, negative outside; `rooms`: (G, N) tasks by group and node.
    """
    count = 1
    for row in range(domain.shape[0]):
        count = max(count, domain[row] + 1)
    sums = np.zeros((rooms.shape[0], count), np.int64)
    first = np.full(count, NOWHERE, np.int64)
    for row in range(domain.shape[0]):
        number = domain[row]
        if number < 0:
            continue
        for group in range(rooms.shape[0]):
            sums[group, number] += rooms[group, row]
            if rooms[group, row] > 0 and first[number] == NOWHERE:
                first[number] = row
    return sums, first


@njit(cache=True, nogil=True)
def rows_in(domain: NDArray[np.int32], rooms: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Rows of a domain that have room for a task of some group, ascending."""
    found = np.empty(domain.shape[0], np.int64)
    count = 0
    for row in range(domain.shape[0]):
        if domain[row] == number and rooms[:, row].any():
            found[count] = row
            count += 1
    return found[:count].copy()
