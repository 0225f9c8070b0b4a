"""What windows need of nodes that they take a part of, beside what runs there already."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.compiled import bare
from atoll.core.state.window_layout import Shares

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOBODY: Final = -1
_WHOLE: Final = 100


class Tasks(NamedTuple):
    """Tasks of work on N rows: those of row r are first[r] up to first[r + 1]."""

    first: Ints
    ends: Floats
    """When its run ends at the latest; infinity for never."""
    key: Ints
    """Whose it is, as a row of `owns`."""
    cpu: Ints
    memory: Ints
    first_grant: Ints
    device: Ints
    blocks: Ints
    bits: Ints


class Spent(NamedTuple):
    """What of S shares their owners use, or others who have to go when an owner comes."""

    share: Ints
    """(tasks) whose share each uses, or NOBODY's."""
    cpu: Ints
    memory: Ints
    blocks: Ints
    """By grant of a share."""


class Needs(NamedTuple):
    """What is to be kept free of some rows (R) with D devices."""

    cpu: Ints
    memory: Ints
    blocks: Ints
    bits: Ints


@bare
def spend(
    first: Ints, shares: Shares, start: Floats, tasks: Tasks, owns: Bools, spent: Spent
) -> None:
    """Find out whose share each task uses: at most one, of those on its row the first.

    `first` (N + 1) into the shares, `start` (W) of windows, `owns` (keys, W).
    """
    for row in range(first.shape[0] - 1):
        for task in range(tasks.first[row], tasks.first[row + 1]):
            for share in range(first[row], first[row + 1]):
                window = shares.window[share]
                if tasks.ends[task] <= start[window] or shares.whole[share]:
                    continue
                if owns[tasks.key[task], window] or _is_on(shares, share, tasks, task):
                    _count(shares, share, tasks, task, spent)
                    break


@bare
def need(
    rows: Ints,
    first: Ints,
    shares: Shares,
    times: Floats,
    meets: Bools,
    tasks: Tasks,
    spent: Spent,
    needs: Needs,
) -> None:
    """Write what the windows that `meets` (W) marks need of each of `rows`, the most at a time.

    `times`: (W, 2) of their starts, now for those that have begun, and ends.
    """
    wide = needs.blocks.shape[1]
    for at in range(rows.shape[0]):
        row = rows[at]
        for one in range(first[row], first[row + 1]):
            if not meets[shares.window[one]]:
                continue
            moment = times[shares.window[one], 0]
            cpu, memory = _gone(row, tasks, spent, shares, times, moment)
            for share in range(first[row], first[row + 1]):
                window = shares.window[share]
                if meets[window] and times[window, 0] <= moment < times[window, 1]:
                    cpu += max(0, shares.cpu[share] - spent.cpu[share])
                    memory += max(0, shares.memory[share] - spent.memory[share])
                    for grant in range(shares.first_grant[share], shares.first_grant[share + 1]):
                        needs.bits[at, shares.device[grant]] |= shares.bits[grant]
            needs.cpu[at] = max(needs.cpu[at], cpu)
            needs.memory[at] = max(needs.memory[at], memory)
            for device in range(wide):
                blocks = _blocks(row, device, first, shares, times, meets, tasks, spent, moment)
                needs.blocks[at, device] = max(needs.blocks[at, device], blocks)


@bare
def _is_on(shares: Shares, share: int, tasks: Tasks, task: int) -> bool:
    """Whether a task has devices, or slices, that are booked as a whole."""
    for grant in range(tasks.first_grant[task], tasks.first_grant[task + 1]):
        for booked in range(shares.first_grant[share], shares.first_grant[share + 1]):
            if tasks.device[grant] != shares.device[booked]:
                continue
            whole = shares.blocks[booked] == _WHOLE and tasks.blocks[grant] > 0
            if whole or tasks.bits[grant] & shares.bits[booked] != 0:
                return True
    return False


@bare
def _count(shares: Shares, share: int, tasks: Tasks, task: int, spent: Spent) -> None:
    spent.share[task] = share
    spent.cpu[share] += tasks.cpu[task]
    spent.memory[share] += tasks.memory[task]
    for grant in range(tasks.first_grant[task], tasks.first_grant[task + 1]):
        for booked in range(shares.first_grant[share], shares.first_grant[share + 1]):
            if tasks.device[grant] == shares.device[booked]:
                spent.blocks[booked] += tasks.blocks[grant]


@bare
def _has_gone(
    task: int, tasks: Tasks, spent: Spent, shares: Shares, times: Floats, moment: float
) -> bool:
    """Whether what a task uses is free by then, and counted for no share."""
    if tasks.ends[task] > moment:
        return False
    share = spent.share[task]
    if share == NOBODY:
        return True
    window = shares.window[share]
    return not times[window, 0] <= moment < times[window, 1]


@bare
def _gone(
    row: int, tasks: Tasks, spent: Spent, shares: Shares, times: Floats, moment: float
) -> tuple[int, int]:
    cpu, memory = 0, 0
    for task in range(tasks.first[row], tasks.first[row + 1]):
        if _has_gone(task, tasks, spent, shares, times, moment):
            cpu -= tasks.cpu[task]
            memory -= tasks.memory[task]
    return cpu, memory


@bare
def _blocks(
    row: int,
    device: int,
    first: Ints,
    shares: Shares,
    times: Floats,
    meets: Bools,
    tasks: Tasks,
    spent: Spent,
    moment: float,
) -> int:
    blocks = 0
    for share in range(first[row], first[row + 1]):
        window = shares.window[share]
        if meets[window] and times[window, 0] <= moment < times[window, 1]:
            blocks += _left(shares, spent, share, device)
    return blocks - _freed(row, device, tasks, spent, shares, times, moment) if blocks > 0 else 0


@bare
def _left(shares: Shares, spent: Spent, share: int, device: int) -> int:
    blocks = 0
    for grant in range(shares.first_grant[share], shares.first_grant[share + 1]):
        if shares.device[grant] == device:
            blocks += max(0, shares.blocks[grant] - spent.blocks[grant])
    return blocks


@bare
def _freed(
    row: int,
    device: int,
    tasks: Tasks,
    spent: Spent,
    shares: Shares,
    times: Floats,
    moment: float,
) -> int:
    blocks = 0
    for task in range(tasks.first[row], tasks.first[row + 1]):
        if _has_gone(task, tasks, spent, shares, times, moment):
            for grant in range(tasks.first_grant[task], tasks.first_grant[task + 1]):
                if tasks.device[grant] == device:
                    blocks += tasks.blocks[grant]
    return blocks
