"""Terms of a score that more than one form of shapes has."""

from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.loss_kernels import FINE, QUANTUM, LossTables, loss
from atoll.core.policies.interfaces import Term
from atoll.core.state.columns import SHAPE_WIDTH, Shapes
from atoll.core.state.compiled import bare, inlined
from atoll.core.state.fit_kernels import VIEW_FREE, WHOLE, View, of_kind

_LOSS: Final = int(Term.LOSS)
_LOSS_SQUASHED: Final = int(Term.LOSS_SQUASHED)
_DEVICE: Final = FINE * WHOLE * 256
"""A device in units of loss."""
_TAKEN: Final = -WHOLE
_MOST: Final = np.iinfo(np.int32).max - 1
_LEAST: Final = np.iinfo(np.int32).min
_MIX: Final = 0x2545F4914F6CDD1D


@inlined
def growth(
    before: int, cpu_left: int, tables: LossTables, weights: NDArray[np.int64], seen: View
) -> int:
    """Weighted terms of how much the loss has grown; `weights`: (TERMS) of the shape's form."""
    if not looks_at_loss(weights):
        return 0
    return terms_of(loss(seen, cpu_left, tables) - before, tables, weights)


@inlined
def looks_at_loss(weights: NDArray[np.int64]) -> bool:
    """Whether any of the terms of a form of shapes is one of the loss."""
    return bool(weights[_LOSS] != 0 or weights[_LOSS_SQUASHED] != 0)


@inlined
def terms_of(grown: int, tables: LossTables, weights: NDArray[np.int64]) -> int:
    """Weighted terms of a loss that has grown by so much."""
    total = weights[_LOSS] * (grown // tables.constants[QUANTUM])
    if weights[_LOSS_SQUASHED] != 0:
        # As published: the drop through a sigmoid, times 100, cut to an integer.
        total += weights[_LOSS_SQUASHED] * (100 - int(100.0 / (1.0 + exp(grown / _DEVICE))))
    return int(total)


@inlined
def hide_whole(seen: View, shapes: Shapes, shape: int, shares: int) -> None:
    """Mark the devices that a shape of whole ones would take; there must be enough."""
    hidden, device = 0, 0
    while hidden < shares:
        if seen[VIEW_FREE, device] == WHOLE and of_kind(seen, shapes, shape, device):
            seen[VIEW_FREE, device] = _TAKEN
            hidden += 1
        device += 1


@inlined
def show_whole(seen: View) -> None:
    """Undo `hide_whole`."""
    for device in range(seen.shape[1]):
        if seen[VIEW_FREE, device] == _TAKEN:
            seen[VIEW_FREE, device] = WHOLE


@bare
def by_chance(start: int, shapes: Shapes, shape: int, free: int) -> int:
    """0 to 2^20 by a node's number, the shape, and what is free: it changes with each task."""
    mixed = start + free
    for column in range(SHAPE_WIDTH):
        mixed = (mixed ^ shapes[shape, column]) * _MIX
        mixed ^= (mixed >> 29) & 0x7FFFFFFFF
    return int((mixed >> 40) & 0xFFFFF)


@inlined
def bounded(total: int) -> int:
    """A score that neither overflows nor means that nothing fits."""
    return int(max(_LEAST, min(total, _MOST)))
