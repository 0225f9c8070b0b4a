"""Reversible operations on scratch columns: a gang that does not fit leaves no trace."""

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.columns import SHAPE_SHARES, Nodes, Shapes, copy_leading, scratch_copy
from atoll.core.state.fit_kernels import ANY_DEVICE, NO_FIT, VIEW_ROWS, Hardware
from atoll.core.state.ledger_kernels import Uses, give_tasks
from atoll.core.state.statement_kernels import Journal, place


class Statement:
    """What a cycle has taken so far. `nodes` are its own; the snapshot stays as it was."""

    def __init__(self, nodes: Nodes, hardware: Hardware, shapes: Shapes) -> None:
        self.nodes = scratch_copy(nodes)
        self.hardware = hardware
        self.shapes = shapes
        self._wide = nodes.model.shape[1]
        self.journal = _journal(1024, 8192, self._wide)

    def checkpoint(self) -> int:
        """A mark to which `rollback` can return."""
        return int(self.journal.size[0])

    def rollback(self, mark: int) -> None:
        """Give back everything taken since the mark."""
        give_tasks(self.nodes, self.journal.uses, mark, self.checkpoint())
        self.journal.size[0] = mark

    def allocate(self, shape: int, row: int, *, job: int, group: int) -> bool:
        """Take one task of `shape` on a node; False, and nothing taken, when it does not fit."""
        self.reserve(1, int(self.shapes[shape, SHAPE_SHARES]))
        at = self.checkpoint()
        self.journal.job[at], self.journal.group[at] = job, group
        models, cuts = self.hardware
        nodes, shapes, journal = self.nodes, self.shapes, self.journal
        return place(nodes, models, cuts, shapes, journal, shape, row, ANY_DEVICE) != NO_FIT

    def reserve(self, tasks: int, shares: int) -> None:
        """Make room for so many more tasks, each with up to `shares` shares."""
        have = len(self.journal.job)
        used = self.checkpoint()
        wide = len(self.journal.uses.device)
        need = int(self.journal.uses.first_grant[used]) + tasks * shares + 1
        if used + tasks + 1 < have and need < wide:
            return
        grown = _journal(max(have, (used + tasks + 1) * 2), max(wide, need * 2), self._wide)
        copy_leading(self.journal.uses, grown.uses)
        copy_leading(self.journal[1:], grown[1:])
        self.journal = grown

    def rows_since(self, mark: int) -> NDArray[np.int64]:
        """Rows touched since the mark, in order, with repeats."""
        return self.journal.uses.row[mark : self.checkpoint()]


def _journal(tasks: int, shares: int, devices: int) -> Journal:
    uses = Uses(
        first_task=np.zeros(1, np.int64),
        row=np.zeros(tasks, np.int64),
        cpu=np.zeros(tasks, np.int64),
        memory=np.zeros(tasks, np.int64),
        first_grant=np.zeros(tasks + 1, np.int64),
        device=np.zeros(shares, np.int64),
        blocks=np.zeros(shares, np.int64),
        bits=np.zeros(shares, np.int64),
    )
    job, group, shape, units = (np.zeros(tasks, np.int64) for _ in range(4))
    seen = np.zeros((VIEW_ROWS, devices), np.int64)
    return Journal(uses, np.zeros(1, np.int64), job, group, shape, units, seen)
