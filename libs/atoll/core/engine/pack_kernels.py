"""Packs the tasks of a group onto chosen nodes."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from atoll.core.engine.score_kernels import NO, Scoring, look_at, score
from atoll.core.state.columns import Nodes
from atoll.core.state.ledger_kernels import give_tasks
from atoll.core.state.statement_kernels import Journal, place


@njit(cache=True, nogil=True)
def pack(
    nodes: Nodes,
    scoring: Scoring,
    journal: Journal,
    rows: NDArray[np.int64],
    shape: int,
    count: int,
    units_left: int,
) -> tuple[int, int]:
    """Place up to `count` tasks on the best of `rows` one after another: (placed, charge).

    Stops before a task whose charge is more than what is left then; the charge returned
    includes it. There must be room in the journal.
    """
    models, cuts, shapes, weights, seen, trial, _ = scoring
    scores = np.empty(rows.shape[0], np.int32)
    for i in range(rows.shape[0]):
        node = look_at(nodes, models, rows[i], seen)
        scores[i] = score(node, cuts, shapes, weights, seen, trial, shape)
    units = 0
    for placed in range(count):
        i = _least(scores)
        if i < 0:
            return placed, units
        units += place(nodes, models, cuts, shapes, journal, shape, rows[i])
        if units > units_left:
            journal.size[0] -= 1
            give_tasks(nodes, journal.uses, journal.size[0], journal.size[0] + 1)
            return placed, units
        node = look_at(nodes, models, rows[i], seen)
        scores[i] = score(node, cuts, shapes, weights, seen, trial, shape)
    return count, units


@njit(cache=True, nogil=True)
def _least(scores: NDArray[np.int32]) -> int:
    at, least = -1, NO
    for i in range(scores.shape[0]):
        if scores[i] < least:
            at, least = i, scores[i]
    return at
