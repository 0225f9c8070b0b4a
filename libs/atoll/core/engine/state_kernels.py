"""What nodes in some state are worth to every shape: worked out once for all of them.

Scores depend on what a node is and what is free of it, not on which node it is
nor on the order of its devices. Most nodes are in the same few states, and get
into them again and again. A state is its whole key, and what it is worth is
worked out from that key alone, so sharing it is never a guess. States that no
node is in are kept until their place is needed.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import NO
from atoll.core.state.columns import Nodes, empty_nodes
from atoll.core.state.compiled import bare, inlined

UNKNOWN: Final = np.iinfo(np.int32).min
"""No score yet."""
NO_ROOM_YET: Final = -1
"""No count yet."""
NOTHING: Final = 0
"""The state of rows without a node: nothing fits there."""
EMPTY: Final = -1
SLACK: Final = 4096
"""States kept beside twice as many as nodes are in."""

_CPU: Final = 0
_MEMORY: Final = 1
_CPU_CAP: Final = 2
_MEMORY_CAP: Final = 3
_ID: Final = 4
AMOUNTS: Final = 5
"""Of a key; the devices follow."""
_USED: Final = 0
"""Places that were ever in use."""
_LIVE: Final = 1
"""States that some node is in."""
_HAND: Final = 2
"""Where the next place to be taken is looked for."""
_NOW: Final = 3
"""Number of the set of columns and lanes that are active."""
_MOST_MEMORY: Final = 4
"""Free memory beyond this changes no score and no count."""
_BY_CHANCE: Final = 5
"""1: scores depend on the node itself."""
_FIGURES: Final = 6
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_LOW: Final = 65535


class States(NamedTuple):
    """E states, more than there are nodes."""

    of: NDArray[np.int32]
    """(size) state of every node."""
    nodes: NDArray[np.int32]
    """(E) how many nodes are in it."""
    key: NDArray[np.int64]
    """(E, AMOUNTS + D)."""
    mixed: NDArray[np.int64]
    """(E) hash of the key."""
    score: NDArray[np.int32]
    """(E, W) by column, UNKNOWN before it was asked for."""
    room: NDArray[np.int32]
    """(E, G) by lane."""
    known: NDArray[np.int64]
    """(E) set of columns and lanes for which everything is known."""
    slot: NDArray[np.int32]
    """(a power of two) state by hash, or EMPTY."""
    figures: NDArray[np.int64]
    wanted: NDArray[np.int64]
    """(AMOUNTS + D) key that is looked for."""
    sample: Nodes
    """One node in the state that is worked out, its devices in the order of the key."""


@inlined
def find(nodes: Nodes, states: States, row: int) -> int:
    """The state of a node as it is now, perhaps without anything known of it."""
    mixed = _look_for(nodes, states, row)
    last = states.slot.shape[0] - 1
    at = mixed & last
    while states.slot[at] != EMPTY:
        place = states.slot[at]
        if states.mixed[place] == mixed and _is_wanted(states, place):
            return int(place)
        at = (at + 1) & last
    return _enter(states, mixed)


@inlined
def move(states: States, row: int, place: int) -> None:
    """Note that a node is in another state."""
    old = states.of[row]
    if old != place:
        states.of[row] = place
        states.nodes[old] -= 1
        freed = states.nodes[old] == 0
        states.figures[_LIVE] += (states.nodes[place] == 0) - freed
        states.nodes[place] += 1


@inlined
def is_known(states: States, place: int) -> bool:
    """Whether everything that is asked at the moment is known of a state."""
    return bool(states.known[place] == states.figures[_NOW])


@bare
def show(states: States, place: int) -> None:
    """Make the sample a node in a state, of which everything will be known now."""
    key, sample = states.key, states.sample
    states.known[place] = states.figures[_NOW]
    sample.cpu_free[0], sample.memory_free[0] = key[place, _CPU], key[place, _MEMORY]
    sample.cpu_cap[0], sample.memory_cap[0] = key[place, _CPU_CAP], key[place, _MEMORY_CAP]
    sample.id[0] = key[place, _ID]
    for device in range(sample.model.shape[1]):
        word = key[place, AMOUNTS + device]
        sample.model[0, device] = np.int16(word >> 48)
        sample.blocks_cap[0, device] = np.int16(word >> 32)
        sample.blocks_free[0, device] = np.int16(word >> 16)
        sample.slices[0, device] = np.int16(word)


@inlined
def _look_for(nodes: Nodes, states: States, row: int) -> int:
    wanted, figures = states.wanted, states.figures
    wanted[_CPU] = nodes.cpu_free[row]
    wanted[_MEMORY] = min(nodes.memory_free[row], figures[_MOST_MEMORY])
    wanted[_CPU_CAP] = nodes.cpu_cap[row]
    wanted[_MEMORY_CAP] = nodes.memory_cap[row]
    wanted[_ID] = nodes.id[row] * figures[_BY_CHANCE]
    for device in range(nodes.model.shape[1]):
        word = _word(nodes, row, device)
        at = AMOUNTS + device
        while at > AMOUNTS and wanted[at - 1] > word:
            wanted[at] = wanted[at - 1]
            at -= 1
        wanted[at] = word
    mixed = np.uint64(0)
    for at in range(wanted.shape[0]):
        mixed = (mixed ^ np.uint64(wanted[at])) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return int(np.int64(mixed >> np.uint64(2)))


@inlined
def _word(nodes: Nodes, row: int, device: int) -> int:
    low = np.int64(_LOW)
    word = np.int64(nodes.model[row, device]) << 48
    word |= (np.int64(nodes.blocks_cap[row, device]) & low) << 32
    word |= (np.int64(nodes.blocks_free[row, device]) & low) << 16
    return int(word | (np.int64(nodes.slices[row, device]) & low))


@inlined
def _is_wanted(states: States, place: int) -> bool:
    differs = np.int64(0)
    for at in range(states.wanted.shape[0]):
        differs |= states.key[place, at] ^ states.wanted[at]
    return bool(differs == 0)


@bare
def _enter(states: States, mixed: int) -> int:
    """A place for the state that was looked for and is not there."""
    place = _free_place(states)
    for at in range(states.wanted.shape[0]):
        states.key[place, at] = states.wanted[at]
    for column in range(states.score.shape[1]):
        states.score[place, column] = UNKNOWN
    for lane in range(states.room.shape[1]):
        states.room[place, lane] = NO_ROOM_YET
    states.mixed[place], states.nodes[place], states.known[place] = mixed, 0, EMPTY
    last = states.slot.shape[0] - 1
    at = mixed & last
    while states.slot[at] != EMPTY:
        at = (at + 1) & last
    states.slot[at] = place
    return place


@bare
def _free_place(states: States) -> int:
    figures = states.figures
    used = figures[_USED]
    if used < states.nodes.shape[0] and used < 2 * figures[_LIVE] + SLACK:
        figures[_USED] += 1
        return int(used)
    # There are more states than nodes, so one of them is not in use.
    place = figures[_HAND]
    while states.nodes[place] > 0:
        place = place + 1 if place + 1 < used else NOTHING + 1
    figures[_HAND] = place + 1 if place + 1 < used else NOTHING + 1
    _take_out(states, place)
    return int(place)


@bare
def _take_out(states: States, place: int) -> None:
    last = states.slot.shape[0] - 1
    hole = states.mixed[place] & last
    while states.slot[hole] != place:
        hole = (hole + 1) & last
    at = hole
    while True:
        at = (at + 1) & last
        if states.slot[at] == EMPTY:
            break
        home = states.mixed[states.slot[at]] & last
        # One may move back to the hole unless its home lies after the hole.
        if (at - home) & last >= (at - hole) & last:
            states.slot[hole] = states.slot[at]
            hole = at
    states.slot[hole] = EMPTY


def empty_states(size: int, devices: int) -> States:
    """States for so many nodes of so many devices each; no columns and no lanes."""
    places = size + 2
    states = States(
        of=np.full(size, NOTHING, np.int32),
        nodes=np.zeros(places, np.int32),
        key=np.empty((places, AMOUNTS + devices), np.int64),
        mixed=np.empty(places, np.int64),
        score=np.empty((places, 0), np.int32),
        room=np.empty((places, 0), np.int32),
        known=np.empty(places, np.int64),
        slot=np.full(1 << (2 * places).bit_length(), EMPTY, np.int32),
        figures=np.zeros(_FIGURES, np.int64),
        wanted=np.zeros(AMOUNTS + devices, np.int64),
        sample=empty_nodes(1, devices, 1),
    )
    states.nodes[NOTHING] = size
    states.figures[[_USED, _HAND, _LIVE]] = NOTHING + 1
    return states


def follow(states: States, *, memory_matters: bool, by_chance: bool) -> None:
    """Say what scores depend on, before anything is entered."""
    states.figures[_MOST_MEMORY] = np.iinfo(np.int64).max if memory_matters else 0
    states.figures[_BY_CHANCE] = by_chance


def ask(states: States, number: int, *, memory: int) -> bool:
    """Name the set of columns and lanes that is active; no task asks for more memory on a node.

    True when that is more than ever before: all nodes have to be looked at again.
    """
    grew = memory > int(states.figures[_MOST_MEMORY])
    states.figures[_NOW] = number
    states.figures[_MOST_MEMORY] = max(memory, int(states.figures[_MOST_MEMORY]))
    return grew


def in_use(states: States) -> NDArray[np.int64]:
    """States that nodes are in, but for NOTHING."""
    used = int(states.figures[_USED])
    places: NDArray[np.int64] = np.flatnonzero(states.nodes[1:used] > 0) + 1
    return places


def widened(states: States, columns: int, lanes: int) -> States:
    """With room for so many columns and lanes."""
    used = int(states.figures[_USED])
    score = _widened(states.score, columns, used=used, fill=UNKNOWN)
    room = _widened(states.room, lanes, used=used, fill=NO_ROOM_YET)
    score[NOTHING], room[NOTHING] = NO, 0
    return states._replace(score=score, room=room)


def _widened(old: NDArray[np.int32], wide: int, *, used: int, fill: int) -> NDArray[np.int32]:
    if wide <= old.shape[1]:
        return old
    # What no state has used yet is not written to, and so takes no memory.
    new = np.empty((len(old), wide), np.int32)
    new[:used, : old.shape[1]] = old[:used]
    new[:used, old.shape[1] :] = fill
    return new
