"""The arithmetic of the ledger on arrays, compiled. Nothing else adds or subtracts what is used."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.state.columns import MODE_BLOCKS, MODE_EITHER, MODE_MIG, Nodes
from atoll.core.state.compiled import bare

FINE: Final = 0
DOUBLE_USE: Final = 1
"""A share of a device that another task holds."""
CPU_SHORT: Final = 2
MEMORY_SHORT: Final = 3
BLOCKS_SHORT: Final = 4
WRONG_MODE: Final = 5
"""Blocks of a device in slices, slices of one in blocks, or of a device that is not usable."""

_WHOLE: Final = 100


class Uses(NamedTuple):
    """Flattened gangs: tasks of gang g are first_task[g] to first_task[g + 1], as are grants."""

    first_task: NDArray[np.int64]
    row: NDArray[np.int64]
    cpu: NDArray[np.int64]
    memory: NDArray[np.int64]
    first_grant: NDArray[np.int64]
    device: NDArray[np.int64]
    blocks: NDArray[np.int64]
    bits: NDArray[np.int64]
    """Slices with the media engine; 0 where `blocks` is used."""


@njit(cache=True, nogil=True)
def take_gangs(nodes: Nodes, mode: NDArray[np.int8], uses: Uses, strict: bool) -> NDArray[np.int8]:
    """Take every gang whole or not at all, in order; why not, shape (gangs,).

    `mode` is that of the device models. Strict: only what is free may be taken.
    Otherwise a node may go below zero, and only a share with two owners is refused.
    """
    gangs = uses.first_task.shape[0] - 1
    codes = np.zeros(gangs, np.int8)
    for gang in range(gangs):
        first, end = uses.first_task[gang], uses.first_task[gang + 1]
        for task in range(first, end):
            code = _take_task(nodes, mode, uses, task, strict)
            if code != FINE:
                codes[gang] = code
                give_tasks(nodes, uses, first, task)
                break
    return codes


@bare
def take_task(nodes: Nodes, uses: Uses, task: int) -> None:
    """Take one task that is known to fit."""
    row = uses.row[task]
    nodes.cpu_free[row] -= uses.cpu[task]
    nodes.memory_free[row] -= uses.memory[task]
    for grant in range(uses.first_grant[task], uses.first_grant[task + 1]):
        _take_grant(nodes, uses, row, grant)


@bare
def take_tasks(nodes: Nodes, uses: Uses, first: int, end: int) -> None:
    """Take the tasks from `first` to before `end`, whatever is free."""
    for task in range(first, end):
        take_task(nodes, uses, task)


@bare
def give_tasks(nodes: Nodes, uses: Uses, first: int, end: int) -> None:
    """Give back the tasks from `first` to before `end`."""
    for task in range(first, end):
        row = uses.row[task]
        nodes.cpu_free[row] += uses.cpu[task]
        nodes.memory_free[row] += uses.memory[task]
        _give_grants(nodes, uses, row, uses.first_grant[task], uses.first_grant[task + 1])


@bare
def give_gangs(nodes: Nodes, uses: Uses, gangs: NDArray[np.int64]) -> None:
    """Give back what some gangs use."""
    for gang in gangs:
        give_tasks(nodes, uses, uses.first_task[gang], uses.first_task[gang + 1])


@bare
def _take_task(nodes: Nodes, mode: NDArray[np.int8], uses: Uses, task: int, strict: bool) -> int:
    row = uses.row[task]
    if strict and nodes.cpu_free[row] < uses.cpu[task]:
        return CPU_SHORT
    if strict and nodes.memory_free[row] < uses.memory[task]:
        return MEMORY_SHORT
    first, end = uses.first_grant[task], uses.first_grant[task + 1]
    for grant in range(first, end):
        code = _collision(nodes, uses, row, grant)
        if code == FINE and strict:
            code = _shortage(nodes, mode, uses, row, grant)
        if code != FINE:
            _give_grants(nodes, uses, row, first, grant)
            return code
        _take_grant(nodes, uses, row, grant)
    nodes.cpu_free[row] -= uses.cpu[task]
    nodes.memory_free[row] -= uses.memory[task]
    return FINE


@bare
def _take_grant(nodes: Nodes, uses: Uses, row: int, grant: int) -> None:
    device = uses.device[grant]
    nodes.blocks_free[row, device] -= uses.blocks[grant]
    nodes.slices[row, device] |= uses.bits[grant]


@bare
def _collision(nodes: Nodes, uses: Uses, row: int, grant: int) -> int:
    device = uses.device[grant]
    held = nodes.blocks_cap[row, device] - nodes.blocks_free[row, device]
    if uses.bits[grant] != 0:
        taken = held > 0 or nodes.slices[row, device] & uses.bits[grant] != 0
    else:
        taken = held + uses.blocks[grant] > _WHOLE or nodes.slices[row, device] != 0
    return DOUBLE_USE if taken else FINE


@bare
def _shortage(nodes: Nodes, mode: NDArray[np.int8], uses: Uses, row: int, grant: int) -> int:
    device = uses.device[grant]
    wanted = MODE_MIG if uses.bits[grant] != 0 else MODE_BLOCKS
    ways, cap = mode[nodes.model[row, device]], nodes.blocks_cap[row, device]
    if ways & wanted == 0:
        return WRONG_MODE
    if wanted == MODE_MIG and ways == MODE_EITHER and cap != _WHOLE:
        return BLOCKS_SHORT
    return BLOCKS_SHORT if nodes.blocks_free[row, device] < uses.blocks[grant] else FINE


@bare
def _give_grants(nodes: Nodes, uses: Uses, row: int, first: int, end: int) -> None:
    for grant in range(first, end):
        device = uses.device[grant]
        nodes.blocks_free[row, device] += uses.blocks[grant]
        nodes.slices[row, device] &= ~uses.bits[grant]
