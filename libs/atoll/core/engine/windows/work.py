"""What holds capacity on some rows: runs, and what the cycle has placed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.windows.bookings import Bookings
from atoll.core.model.ids import QueueName
from atoll.core.state.ragged import offsets, spans
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.statement import Statement

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOT_RUNNING = -1


class Work(NamedTuple):
    """T tasks of L loads, those on the rows that were asked for."""

    row: Ints
    load: Ints
    """(T) whose task it is."""
    cpu: Ints
    memory: Ints
    first_grant: Ints
    device: Ints
    blocks: Ints
    bits: Ints
    slot: Ints
    """(L) of the run, or NOT_RUNNING for what the cycle has placed."""
    group: Ints
    """(L) class of what the cycle has placed."""
    ends: Floats
    """(L) when it ends at the latest; infinity for never."""


def work_on(snapshot: Snapshot, rows: Bools, statement: Statement | None, *, now: float) -> Work:
    """Runs and placements with tasks on rows."""
    parts = [_running(snapshot, rows)]
    if statement is not None and statement.checkpoint():
        parts.append(_placed(snapshot, rows, statement, now=now))
    return parts[0] if len(parts) == 1 else _joined(*parts)


def owners(bookings: Bookings, work: Work) -> tuple[Ints, Bools]:
    """(L) a key of each load, and (keys, W) which windows are its owners'."""
    snapshot = bookings.snapshot
    found: dict[tuple[QueueName, tuple[str, ...]], int] = {}
    keys = np.zeros(len(work.ends), np.int64)
    for at, (slot, group) in enumerate(zip(work.slot.tolist(), work.group.tolist(), strict=True)):
        keys[at] = found.setdefault(_of(snapshot, slot, group), len(found))
    owned = [bookings.owned(queue, marks) for queue, marks in found]
    return keys, np.array(owned, np.bool_).reshape(len(found), len(bookings.view))


def _of(snapshot: Snapshot, slot: int, group: int) -> tuple[QueueName, tuple[str, ...]]:
    if slot == NOT_RUNNING:
        view = snapshot.queue.classes[group]
        return view.queue, view.request.marks
    holding = snapshot.running.holdings[slot]
    return holding.queue, holding.run.marks if holding.run is not None else ()


def _running(snapshot: Snapshot, rows: Bools) -> Work:
    running, ids = snapshot.running, snapshot.nodes.id
    tasks = running.tasks
    # A look-up by id is a hundred times as fast as a search among them.
    place = np.full(int(ids[-1]) + 1 if len(ids) else 1, -1, np.int64)
    place[ids] = np.arange(len(ids))
    row = place[tasks.node]
    slot = np.repeat(np.arange(len(running.live)), np.diff(tasks.first_task))
    chosen = np.flatnonzero(rows[row] & running.live[slot])
    slots, load = np.unique(slot[chosen], return_inverse=True)
    grants = spans(tasks.first_grant, chosen)
    return Work(
        row=row[chosen],
        load=load,
        cpu=tasks.cpu[chosen],
        memory=tasks.memory[chosen],
        first_grant=offsets(np.diff(tasks.first_grant)[chosen]),
        device=tasks.device[grants],
        blocks=tasks.blocks[grants],
        bits=tasks.bits[grants],
        slot=slots,
        group=np.full(len(slots), NOT_RUNNING, np.int64),
        ends=running.runs.ends_at[slots],
    )


def _placed(snapshot: Snapshot, rows: Bools, statement: Statement, *, now: float) -> Work:
    journal, size, queue = statement.journal, statement.checkpoint(), snapshot.queue
    uses = journal.uses
    chosen = np.flatnonzero(rows[uses.row[:size]])
    jobs, load = np.unique(journal.job[chosen], return_inverse=True)
    group = np.searchsorted(queue.first, jobs, side="right") - 1
    limits = [queue.classes[each].request.terms.time_limit_s or np.inf for each in group.tolist()]
    first = uses.first_grant[: size + 1]
    grants = spans(first, chosen)
    return Work(
        row=uses.row[chosen],
        load=load,
        cpu=uses.cpu[chosen],
        memory=uses.memory[chosen],
        first_grant=offsets(np.diff(first)[chosen]),
        device=uses.device[grants],
        blocks=uses.blocks[grants],
        bits=uses.bits[grants],
        slot=np.full(len(jobs), NOT_RUNNING, np.int64),
        group=group,
        ends=now + np.array(limits, np.float64),
    )


def _joined(one: Work, other: Work) -> Work:
    moved = other._replace(
        load=other.load + len(one.ends), first_grant=other.first_grant[1:] + one.first_grant[-1]
    )
    return Work._make(np.concatenate(pair) for pair in zip(one, moved, strict=True))
