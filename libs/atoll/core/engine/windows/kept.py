"""Keeps free what windows need of nodes that they take a part of, while others are placed."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.windows.bookings import Bookings
from atoll.core.engine.windows.kept_kernels import NOBODY, Needs, Spent, Tasks, need, spend
from atoll.core.engine.windows.work import owners, work_on
from atoll.core.model.plan import TaskPlacement
from atoll.core.state.columns import MODE_EITHER, MODE_MIG, Nodes
from atoll.core.state.mig import MEDIA_BIT
from atoll.core.state.ragged import offsets, spans
from atoll.core.state.statement import Statement

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
EVERY_SLICE: Final = 255 | MEDIA_BIT
CLOSED_BLOCKS: Final = 10_000
"""More than comes free by anybody's end."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What is taken from some rows for a while, so that nobody else gets it."""

    rows: Ints
    needs: Needs

    def take(self, nodes: Nodes) -> None:
        """Take it, whatever is free."""
        nodes.cpu_free[self.rows] -= self.needs.cpu
        nodes.memory_free[self.rows] -= self.needs.memory
        nodes.blocks_free[self.rows] -= self.needs.blocks.astype(np.int16)
        nodes.slices[self.rows] |= self.needs.bits.astype(np.int16)

    def give(self, nodes: Nodes) -> None:
        """Give it back."""
        nodes.cpu_free[self.rows] += self.needs.cpu
        nodes.memory_free[self.rows] += self.needs.memory
        nodes.blocks_free[self.rows] += self.needs.blocks.astype(np.int16)
        nodes.slices[self.rows] &= ~self.needs.bits.astype(np.int16)


class Parts:
    """Windows' parts of nodes, and who uses them by now, placements of the cycle included."""

    def __init__(self, bookings: Bookings, statement: Statement | None) -> None:
        self._bookings = bookings
        layout = bookings.layout
        self._first, self._shares = layout.first, layout.shares
        view, now = bookings.view, bookings.now
        self._times = np.stack([np.maximum(view.start, now), view.end], axis=1)
        self._tasks, owns = _tasks(bookings, statement)
        shares, grants = len(self._shares.node), len(self._shares.device)
        self._spent = Spent(
            share=np.full(len(self._tasks.ends), NOBODY, np.int64),
            cpu=np.zeros(shares, np.int64),
            memory=np.zeros(shares, np.int64),
            blocks=np.zeros(grants, np.int64),
        )
        self._nobody = Spent(*(column.copy() for column in self._spent))
        spend(self._first, self._shares, view.start, self._tasks, owns, self._spent)

    def kept(self, nodes: Nodes, windows: Bools, rows: Ints, *, all_of_it: bool = False) -> Kept:
        """What some windows need of rows beside what runs there; or all that they have."""
        needs = _nothing(len(rows), nodes.model.shape[1])
        shares, tasks = self._shares, self._tasks
        spent = self._nobody if all_of_it else self._spent
        need(rows, self._first, shares, self._times, windows, tasks, spent, needs)
        # Slices that somebody has are not to be given back to nobody.
        return Kept(rows, needs._replace(bits=needs.bits & ~nodes.slices[rows].astype(np.int64)))

    def outside(self, nodes: Nodes, windows: Bools, rows: Ints) -> Kept:
        """All that is free on rows but for what some windows have there."""
        needs = _nothing(len(rows), nodes.model.shape[1])
        left = _nothing(len(rows), nodes.model.shape[1])
        whole = np.zeros(len(rows), np.bool_)
        booked = np.zeros(left.blocks.shape, np.bool_)
        for at, row in enumerate(rows.tolist()):
            for share in range(int(self._first[row]), int(self._first[row + 1])):
                if windows[self._shares.window[share]]:
                    whole[at] |= self._shares.whole[share]
                    self._leave(left, at, share)
                    grants = slice(*self._shares.first_grant[share : share + 2].tolist())
                    booked[at, self._shares.device[grants]] = True
        part = ~whole
        for name in ("cpu", "memory", "blocks"):
            free = getattr(nodes, f"{name}_free")[rows[part]].astype(np.int64)
            getattr(needs, name)[part] = np.maximum(0, free - getattr(left, name)[part])
        # Also when others have stopped who have something there.
        needs.blocks[part] += np.where(booked[part], 0, CLOSED_BLOCKS)
        mode = self._bookings.snapshot.hardware.models.mode
        ways = mode[nodes.model[rows[part]]]
        # A device that may be handed out either way is kept as the window holds it.
        either = (ways == MODE_EITHER) & (left.bits[part] != 0)
        needs.blocks[part] = np.where(either, 0, needs.blocks[part])
        sliced = (ways == MODE_MIG) | either
        others = EVERY_SLICE & ~left.bits[part] & ~nodes.slices[rows[part]].astype(np.int64)
        needs.bits[part] = np.where(sliced, others, 0)
        return Kept(rows, needs)

    def holds(self, windows: Bools, row: int, task: TaskPlacement) -> bool:
        """Whether what some windows have of a row is large enough for a task, and its devices."""
        cpu, memory, devices = 0, 0, set[int]()
        for share in range(int(self._first[row]), int(self._first[row + 1])):
            if not windows[self._shares.window[share]]:
                continue
            if self._shares.whole[share]:
                return True
            cpu += int(self._shares.cpu[share])
            memory += int(self._shares.memory[share])
            grants = slice(*self._shares.first_grant[share : share + 2].tolist())
            devices.update(self._shares.device[grants].tolist())
        fits = task.cpu_milli <= cpu and task.memory_bytes <= memory
        return fits and {grant.index for grant in task.devices} <= devices

    def _leave(self, left: Needs, at: int, share: int) -> None:
        shares, spent = self._shares, self._spent
        left.cpu[at] += max(0, int(shares.cpu[share] - spent.cpu[share]))
        left.memory[at] += max(0, int(shares.memory[share] - spent.memory[share]))
        for grant in range(int(shares.first_grant[share]), int(shares.first_grant[share + 1])):
            device = int(shares.device[grant])
            blocks = max(0, int(shares.blocks[grant] - spent.blocks[grant]))
            left.blocks[at, device] += blocks
            left.bits[at, device] |= int(shares.bits[grant])


def _nothing(rows: int, devices: int) -> Needs:
    return Needs(
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros((rows, devices), np.int64),
        np.zeros((rows, devices), np.int64),
    )


def _tasks(bookings: Bookings, statement: Statement | None) -> tuple[Tasks, Bools]:
    """Tasks on rows of which some window takes a part, by row; and who owns which windows."""
    layout = bookings.layout
    partly = np.zeros(len(layout.ids), np.bool_)
    partly[layout.shares.node[~layout.shares.whole]] = True
    work = work_on(bookings.snapshot, partly, statement, now=bookings.now)
    keys, owns = owners(bookings, work)
    order = np.argsort(work.row, kind="stable")
    load, grants = work.load[order], spans(work.first_grant, order)
    tasks = Tasks(
        first=offsets(np.bincount(work.row, minlength=len(layout.ids))),
        ends=work.ends[load],
        key=keys[load],
        cpu=work.cpu[order],
        memory=work.memory[order],
        first_grant=offsets(np.diff(work.first_grant)[order]),
        device=work.device[grants],
        blocks=work.blocks[grants],
        bits=work.bits[grants],
    )
    return tasks, owns
