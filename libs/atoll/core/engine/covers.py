"""The cheapest victims for many equal tasks: what each node's room costs, and the best mix.

Exact for victims that are on one node each; runs over several nodes are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.ground import Ground
from atoll.core.engine.room_kernels import count_room
from atoll.core.state.columns import scratch_copy
from atoll.core.state.ledger_kernels import give_gangs

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_ROWS: Final = 64
MOST_PER_ROW: Final = 8
"""Victims of one node; of more, the cheapest."""

_Victims = tuple[int, ...]
_Prices = dict[int, tuple[float, _Victims]]
"""By the number of tasks: the least cost of room for them, and who has to go."""


def covers(field: Ground, cost: Floats) -> Iterator[Bools]:
    """By alternative of the only group: the cheapest victims by whose end it has room."""
    view = field.ask.view
    if len(view.shapes) != 1 or len(field.snapshot.nodes.id) > MOST_ROWS:
        return
    need = view.request.groups[0].min_count
    mine = _by_row(field, cost)
    for shape in view.shapes[0]:
        market = _Market(field, cost, shape, need)
        chosen = _mix([market.prices(row, victims) for row, victims in enumerate(mine)], need)
        if chosen is not None:
            gone = np.zeros(len(cost), np.bool_)
            gone[list(chosen)] = True
            yield gone


@dataclass(frozen=True, slots=True)
class _Market:
    field: Ground
    cost: Floats
    shape: int
    need: int

    def prices(self, row: int, victims: Sequence[int]) -> _Prices:
        """What room on one row costs."""
        prices: _Prices = {}
        for number in range(1 << len(victims)):
            chosen = tuple(v for at, v in enumerate(victims) if number >> at & 1)
            price, room = float(self.cost[list(chosen)].sum()), self._room(row, chosen)
            if room and price < prices.get(room, (np.inf, ()))[0]:
                prices[room] = price, chosen
        return prices

    def _room(self, row: int, victims: _Victims) -> int:
        snapshot, counts = self.field.snapshot, np.zeros(1, np.int64)
        here = snapshot.nodes._replace(**{
            name: column[row : row + 1] for name, column in snapshot.nodes._asdict().items()
        })
        nodes = scratch_copy(here)
        uses = self.field.uses
        on_row = uses._replace(row=np.zeros_like(uses.row))
        give_gangs(nodes, on_row, np.array(victims, np.int64))
        allowed = self.field.ask.masks[self.shape][row : row + 1]
        first = np.zeros(1, np.int64)
        count_room(nodes, self.field.scoring, self.shape, allowed, self.need, first, counts)
        return int(counts[0])


def _by_row(field: Ground, cost: Floats) -> list[list[int]]:
    mine: list[list[int]] = [[] for _ in field.snapshot.nodes.id]
    for victim in np.argsort(cost, kind="stable").tolist():
        first, end = field.uses.first_task[victim : victim + 2].tolist()
        rows = set(field.uses.row[first:end].tolist())
        if len(rows) == 1 and len(mine[row := rows.pop()]) < MOST_PER_ROW:
            mine[row].append(victim)
    return mine


def _mix(rows: Sequence[_Prices], need: int) -> _Victims | None:
    """The cheapest way to have room for `need` tasks over all rows; None when there is none."""
    best: _Prices = {0: (0.0, ())}
    for prices in rows:
        wider = dict(best)
        for had, (paid, gone) in best.items():
            for room, (price, more) in prices.items():
                total = min(need, had + room)
                if paid + price < wider.get(total, (np.inf, ()))[0]:
                    wider[total] = paid + price, gone + more
        best = wider
    return best[need][1] if need in best else None
