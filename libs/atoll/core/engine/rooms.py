"""How many tasks of a shape every node holds, kept up to date while a cycle places others."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.room_kernels import count_room
from atoll.core.engine.score_kernels import Scoring
from atoll.core.state.statement import Statement

_Key = tuple[int, int, int]


@dataclass(slots=True)
class _Known:
    counts: NDArray[np.int64]
    allowed: NDArray[np.bool_]
    mark: int
    """Operations of the statement that the counts know of."""


@dataclass(slots=True)
class Rooms:
    """Counts by shape, filter and the number that is asked for at most.

    To be asked only when no operation can be rolled back any more.
    """

    statement: Statement
    scoring: Scoring
    _known: dict[_Key, _Known] = field(default_factory=dict)

    def get(self, shape: int, allowed: NDArray[np.bool_], *, most: int) -> NDArray[np.int64]:
        """(N) tasks that each node holds by itself, up to `most`; not to be written."""
        nodes, mark = self.statement.nodes, self.statement.checkpoint()
        key = (shape, id(allowed), most)
        known = self._known.get(key)
        if known is None:
            # Keeps the mask alive too, so that no other gets its id.
            known = self._known[key] = _Known(np.zeros(len(allowed), np.int64), allowed, mark)
            rows = np.flatnonzero(allowed)
        else:
            rows = self.statement.rows_since(known.mark)
        count_room(nodes, self.scoring, shape, allowed, most, rows, known.counts)
        known.mark = mark
        return known.counts
