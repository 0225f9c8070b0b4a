"""Which instance to rent next, and for whom: the one that saves most beyond what it costs.

Jobs that an instance holds at the same time share it: they are taken in the order of what they
save for what they take of it, for as long as that saves more than an instance for each of them.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.burst.broker.gains import Gains
from atoll.core.engine.burst.broker.ground import Floats
from atoll.core.engine.burst.broker.table import Bools, largest
from atoll.core.engine.choice.worth import HOUR_S

Ints = NDArray[np.intp]
SHARED = 0.1
"""What several share is held by the last of them for so much longer than the longest is expected
to run: nobody knows who that will be."""
EQUAL = 1.0
"""Micro-dollars."""


@dataclass(frozen=True, slots=True)
class Load:
    """An instance with its jobs."""

    offer: int
    """Column."""
    wants: tuple[int, ...]
    """Rows."""
    saved: float
    cost: float
    held_s: float

    @property
    def net(self) -> float:
        """Micro-dollars that it is expected to save in all."""
        return self.saved - self.cost


def best_load(gains: Gains, rows: Bools, columns: Bools, *, margin: float) -> Load | None:
    """The best one of these rows and columns; None: none saves more than it costs by a margin."""
    wants, offers = np.flatnonzero(rows), np.flatnonzero(columns)
    if not wants.size or not offers.size:
        return None
    grid = np.ix_(wants, offers)
    order = _order(gains.saved[grid], gains.held_s[grid], gains.table.shares[grid])
    sums, longest_s, good = _stacked(gains, grid, order)
    costs = longest_s * gains.prices[offers] / HOUR_S
    charged = costs * (1 + margin)
    charged[1:] *= 1 + SHARED
    nets = np.where(good, sums - charged, -np.inf)
    singles = (gains.saved[grid] - gains.costs[grid] * (1 + margin)).max(axis=1)
    end = _best_end(nets, costs, np.maximum(singles, 0.0)[order].cumsum(axis=0))
    if nets[end] <= 0:
        return None
    last, column = end
    load = Load(
        int(offers[column]),
        tuple(map(int, wants[order[: last + 1, column]])),
        float(sums[end]),
        float(costs[end]),
        float(longest_s[end]),
    )
    return _with_riders(load, gains, wants[order[last + 1 :, column]])


def _stacked(gains: Gains, grid: tuple[Ints, ...], order: Ints) -> tuple[Floats, Floats, Bools]:
    """(W, O) of the first ones in order: what they save, the longest time, and whether they fit."""
    saved, held_s = (
        np.take_along_axis(each[grid], order, axis=0) for each in (gains.saved, gains.held_s)
    )
    parts = np.take_along_axis(gains.table.parts[grid], order[:, :, None], axis=0)
    good = (largest(parts.cumsum(axis=0)) <= 1 + 1e-9) & (saved > 0)
    return saved.cumsum(axis=0), np.maximum.accumulate(held_s, axis=0), good


def _best_end(nets: Floats, costs: Floats, alone: Floats) -> tuple[int, int]:
    """Where most is saved beyond what each of them alone would save; then most for its cost."""
    more = np.where(nets > 0, nets - alone, -np.inf)
    best = np.where(more >= more.max() - EQUAL, nets / np.maximum(costs, 1.0), -np.inf)
    last, column = np.unravel_index(int(np.argmax(best)), best.shape)
    return int(last), int(column)


def _with_riders(load: Load, gains: Gains, others: Ints) -> Load:
    """Those too that still fit beside them and need it for no longer. Rows by number."""
    parts = gains.table.parts[:, load.offer]
    left = 1 + 1e-9 - parts[list(load.wants)].sum(axis=0)
    saved, held_s = gains.saved[others, load.offer], gains.held_s[others, load.offer]
    fit = others[(saved > 0) & (held_s <= load.held_s) & (parts[others] <= left).all(axis=1)]
    riders: list[int] = []
    while fit.size:
        riders.append(int(fit[0]))
        left = left - parts[fit[0]]
        fit = fit[1:][(parts[fit[1:]] <= left).all(axis=1)]
    more = float(gains.saved[riders, load.offer].sum())
    return replace(load, wants=tuple(sorted([*load.wants, *riders])), saved=load.saved + more)


def _order(saved: Floats, held_s: Floats, shares: Floats) -> Ints:
    """(W, O) rows by what they save for what they take, for each column; ties by row."""
    worth = saved / np.maximum(shares * held_s, 1e-9)
    return np.argsort(-worth, axis=0, kind="stable")
