"""What it costs at least to make room on each node, so that the cheapest are looked at first.

Runs are taken by their cost for what they free on the node, the last one in part.
"""

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.columns import Nodes
from atoll.core.state.ledger_kernels import Uses
from atoll.core.state.mig import UNITS_PER_BLOCK

Floats = NDArray[np.float64]


def least_costs(nodes: Nodes, uses: Uses, *, cost: Floats, freed: Floats, asked: int) -> Floats:
    """(N) cost of freeing `asked` 1/56 blocks on a node, infinite where it cannot be done.

    `uses`: one gang per run; `cost`, `freed` (1/56 blocks): by run, all its tasks together.
    """
    free = np.maximum(nodes.blocks_free, 0).sum(axis=1) * UNITS_PER_BLOCK
    short = np.maximum(asked - free, 0).astype(np.float64)
    tasks = np.diff(uses.first_task)
    run = np.repeat(np.arange(len(tasks)), tasks)
    units = _units(uses, run, freed)
    price = cost[run] / units
    order = np.lexsort((price, uses.row))
    row, units, price = uses.row[order], units[order], price[order]
    before = _sums_before(row, units)
    taken = np.clip(short[row] - before, 0.0, units)
    covered = np.bincount(row, taken, len(short))
    least = np.bincount(row, taken * price, len(short))
    return np.where(covered > short - 0.5, least, np.inf)


def _units(uses: Uses, run: NDArray[np.int64], freed: Floats) -> Floats:
    """(T) what each task frees: its part of what its run does, by blocks, or all alike."""
    grants = np.diff(uses.first_grant)
    task = np.repeat(np.arange(len(grants)), grants)
    blocks = np.bincount(task, uses.blocks, len(grants))
    total = np.bincount(run, blocks, len(freed))[run]
    count = np.bincount(run, minlength=len(freed))[run]
    share = np.where(total > 0, blocks / np.maximum(total, 1), 1.0 / np.maximum(count, 1))
    units: Floats = np.maximum(freed[run] * share, 1e-9)
    return units


def _sums_before(row: NDArray[np.int64], units: Floats) -> Floats:
    """Sums of what comes before on the same row; rows ascend."""
    total = np.cumsum(units) - units
    first = np.flatnonzero(np.diff(row, prepend=-1))
    sums: Floats = total - np.repeat(total[first], np.diff(np.append(first, len(row))))
    return sums
