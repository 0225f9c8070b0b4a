"""What a node in some state is worth to every shape, kept for the next node in that state.

Scores depend on what a node is and what is free of it, not on which node it is
nor on the order of its devices. Nodes get into the same few states again and
again, so most scores are copied. A state is its whole key, so that a copy is
never a guess; where two states want one place, the later one has it.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.columns import Nodes
from atoll.core.state.compiled import bare, inlined

UNKNOWN: Final = np.iinfo(np.int32).min
"""No score yet."""
NO_ROOM_YET: Final = -1
"""No count yet."""
AMOUNTS: Final = 4
"""Free CPU and memory, and both capacities; the devices follow."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class States(NamedTuple):
    """A power of two of states."""

    key: NDArray[np.int64]
    """(E, AMOUNTS + D)."""
    version: NDArray[np.int64]
    """(E) set of columns for which everything is known; -1 for an empty place."""
    score: NDArray[np.int32]
    """(E, W) by column, UNKNOWN before it was asked for."""
    room: NDArray[np.int32]
    """(E, G) by lane."""
    now: NDArray[np.int64]
    """(1) number of the set of columns that are active."""
    most_memory: NDArray[np.int64]
    """(1) free memory beyond this changes no score and no count."""
    by_chance: NDArray[np.bool_]
    """(1) scores depend on the node itself: nothing is to be copied."""
    wanted: NDArray[np.int64]
    """(AMOUNTS + D) key of the state that is looked for."""
    order: NDArray[np.int64]
    """(D) its devices in the order of the key."""


@inlined
def find_state(nodes: Nodes, states: States, row: int) -> int:
    """The place of a node's state; whether it is there, `is_known` tells."""
    wanted, order = states.wanted, states.order
    wanted[0] = nodes.cpu_free[row]
    wanted[1] = min(nodes.memory_free[row], states.most_memory[0])
    wanted[2] = nodes.cpu_cap[row]
    wanted[3] = nodes.memory_cap[row]
    for device in range(order.shape[0]):
        word = _word(nodes, row, device)
        at = device
        while at > 0 and wanted[AMOUNTS + at - 1] > word:
            wanted[AMOUNTS + at] = wanted[AMOUNTS + at - 1]
            order[at] = order[at - 1]
            at -= 1
        wanted[AMOUNTS + at] = word
        order[at] = device
    mixed = np.uint64(0)
    for at in range(wanted.shape[0]):
        mixed = (mixed ^ np.uint64(wanted[at])) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return int(np.int64(mixed >> np.uint64(20)) & (states.version.shape[0] - 1))


@inlined
def is_known(states: States, place: int) -> bool:
    """Whether the place holds the state that was looked for, with all that is asked now."""
    if states.version[place] != states.now[0] or states.by_chance[0]:
        return False
    return _is_here(states, place)


@bare
def claim(states: States, place: int) -> None:
    """Give the place to the state that was looked for; what is known of it stays."""
    if states.version[place] < 0 or states.by_chance[0] or not _is_here(states, place):
        for at in range(states.wanted.shape[0]):
            states.key[place, at] = states.wanted[at]
        for column in range(states.score.shape[1]):
            states.score[place, column] = UNKNOWN
        for lane in range(states.room.shape[1]):
            states.room[place, lane] = NO_ROOM_YET
    states.version[place] = states.now[0]


@inlined
def _is_here(states: States, place: int) -> bool:
    differs = np.int64(0)
    for at in range(states.wanted.shape[0]):
        differs |= states.key[place, at] ^ states.wanted[at]
    return bool(differs == 0)


@inlined
def _word(nodes: Nodes, row: int, device: int) -> int:
    low = np.int64(65535)
    word = np.int64(nodes.model[row, device]) << 48
    word |= (np.int64(nodes.blocks_cap[row, device]) & low) << 32
    word |= (np.int64(nodes.blocks_free[row, device]) & low) << 16
    return int(word | (np.int64(nodes.slices[row, device]) & low))


def empty_states(places: int, *, devices: int, columns: int, lanes: int) -> States:
    """Room for so many states, a power of two."""
    return States(
        key=np.zeros((places, AMOUNTS + devices), np.int64),
        version=np.full(places, -1, np.int64),
        score=np.full((places, columns), UNKNOWN, np.int32),
        room=np.full((places, lanes), NO_ROOM_YET, np.int32),
        now=np.zeros(1, np.int64),
        most_memory=np.full(1, np.iinfo(np.int64).max, np.int64),
        by_chance=np.zeros(1, np.bool_),
        wanted=np.zeros(AMOUNTS + devices, np.int64),
        order=np.zeros(devices, np.int64),
    )
