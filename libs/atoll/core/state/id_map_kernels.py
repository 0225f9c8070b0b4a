"""A hash map from ids to slots that keeps no ids: they are looked up where the slots point.

Four bytes a place; a dict takes a hundred.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

EMPTY: Final = -1
"""No slot is at this place."""


@njit(cache=True, nogil=True)
def find(
    places: NDArray[np.int32], id_of: NDArray[np.int64], ids: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Slot of every id, -1 for those that are not there. `id_of`: by slot."""
    found = np.empty(ids.shape[0], np.int64)
    for i in range(ids.shape[0]):
        found[i] = places[_place(places, id_of, ids[i])]
    return found


@njit(cache=True, nogil=True)
def put(places: NDArray[np.int32], id_of: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
    """Enter the slots of ids that are not there; there must be room."""
    for slot in slots:
        places[_place(places, id_of, id_of[slot])] = slot


@njit(cache=True, nogil=True)
def drop(places: NDArray[np.int32], id_of: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
    """Remove slots that are there, closing the gap that each leaves in its chain."""
    last = places.shape[0] - 1
    for slot in slots:
        hole = _place(places, id_of, id_of[slot])
        if places[hole] == EMPTY:
            continue
        place = hole
        while True:
            place = (place + 1) & last
            if places[place] == EMPTY:
                break
            home = _home(places, id_of[places[place]])
            # A slot may move back to the hole unless its home lies after the hole.
            if (place - home) & last >= (place - hole) & last:
                places[hole] = places[place]
                hole = place
        places[hole] = EMPTY


@njit(cache=True, nogil=True)
def _home(places: NDArray[np.int32], id_: int) -> int:
    mixed = np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.int64(mixed >> np.uint64(32)) & (places.shape[0] - 1))


@njit(cache=True, nogil=True)
def _place(places: NDArray[np.int32], id_of: NDArray[np.int64], id_: int) -> int:
    last = places.shape[0] - 1
    place = _home(places, id_)
    while places[place] != EMPTY and id_of[places[place]] != id_:
        place = (place + 1) & last
    return place
