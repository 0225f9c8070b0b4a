"""Fills instances one by one with jobs, as long as it pays and budgets last."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from atoll.core.engine.burst.broker.fill import Load, best_load
from atoll.core.engine.burst.broker.gains import Gains
from atoll.core.engine.burst.broker.ground import Options
from atoll.core.engine.burst.broker.leave import Bar
from atoll.core.engine.burst.broker.rooms import Purse
from atoll.core.engine.burst.broker.stock import Stock
from atoll.core.engine.burst.broker.table import Bools
from atoll.core.model.ids import QueueName

ALIKE = 0.95
"""The next instance of an offer is taken unseen when it saves so much of what the last one did."""


class Refused(NamedTuple):
    """Why nothing was rented for a row."""

    row: int
    bar: Bar
    detail: str = ""


@dataclass(slots=True)
class _Line:
    """The jobs of one queue that still want something, and what they may take."""

    queue: QueueName
    rows: Bools
    columns: Bools
    short: str = ""
    """Which budget was too small, if one was."""


class Filling:
    """The queue goes first whose next instance saves most for its price."""

    def __init__(self, gains: Gains, *, purse: Purse, stock: Stock, options: Options) -> None:
        self._gains, self._purse, self._stock, self._options = gains, purse, stock, options
        self.loads: list[Load] = []
        self.refused: list[Refused] = []

    def run(self) -> None:
        """All that pays."""
        lines = self._lines()
        nexts = {queue: self._best(line) for queue, line in lines.items()}
        while self._stock.left > 0 and (load := _dearest(nexts)):
            line = lines[self._gains.wants[load.wants[0]].queue]
            taken = self._take(line, load)
            nexts[line.queue] = self._next(line, load) if taken else self._best(line)
        for queue, line in lines.items():
            self._refuse(line, many=nexts[queue] is not None)

    def _lines(self) -> dict[QueueName, _Line]:
        queues = np.array([want.queue for want in self._gains.wants], dtype=object)
        every = np.ones(len(self._gains.offers), dtype=bool)
        return {
            queue: _Line(queue, np.asarray(queues == queue, dtype=bool), every.copy())
            for queue in dict.fromkeys(queues)
        }

    def _best(self, line: _Line) -> Load | None:
        margin = self._options.margin
        useful = line.rows & (self._gains.saved > 0).any(axis=1)
        load = best_load(self._gains, useful, line.columns, margin=margin)
        while load is not None and (dear := self._too_dear(load)):
            self._gains.saved[dear, load.offer] = 0.0
            load = best_load(self._gains, useful, line.columns, margin=margin)
        return load

    def _next(self, line: _Line, last: Load) -> Load | None:
        """Another one of the same offer if that is about as good, without a look at the others."""
        column = np.zeros_like(line.columns)
        column[last.offer] = line.columns[last.offer]
        same = best_load(self._gains, line.rows, column, margin=self._options.margin)
        good = same is not None and same.net >= ALIKE * last.net and not self._too_dear(same)
        return same if good else self._best(line)

    def _take(self, line: _Line, load: Load) -> bool:
        offer = self._gains.offers[load.offer]
        if not self._stock.has(offer):
            line.columns[load.offer] = False
            return False
        rate, ahead = offer.price, round(load.cost)
        short = self._purse.short(line.queue, rate=rate, ahead=ahead)
        if short:
            # What is dearer is too dear as well.
            line.columns &= self._gains.prices < offer.price
            line.short = short
            return False
        self._purse.take(line.queue, rate=rate, ahead=ahead)
        self._stock.take(offer)
        line.rows[list(load.wants)] = False
        self.loads.append(load)
        return True

    def _too_dear(self, load: Load) -> list[int]:
        """Whose part of the cost is above its own limit."""
        shares = self._gains.table.shares[list(load.wants), load.offer]
        parts = load.cost * shares / shares.sum()
        limits = (self._gains.wants[row].max_cost for row in load.wants)
        pairs = zip(load.wants, parts, limits, strict=True)
        return [row for row, part, limit in pairs if 0 < limit < part]

    def _refuse(self, line: _Line, *, many: bool) -> None:
        for row in np.flatnonzero(line.rows):
            self.refused.append(self._why_not(int(row), line, many=many))

    def _why_not(self, row: int, line: _Line, *, many: bool) -> Refused:
        leave = self._gains.leave
        if bar := leave.bars[row]:
            return Refused(row, bar, leave.refusals[row] if bar is Bar.POLICY else "")
        worth = self._gains.saved[row] > self._gains.costs[row] * (1 + self._options.margin)
        if worth.any():
            return Refused(row, Bar.MANY if many else Bar.BUDGET, line.short)
        return Refused(row, Bar.SOON)


def _dearest(nexts: Mapping[QueueName, Load | None]) -> Load | None:
    """The load that saves most for its price; ties in the order of queues."""
    loads = [load for load in nexts.values() if load is not None]
    return max(loads, key=lambda load: load.net / max(load.cost, 1.0), default=None)
