"""The columns of work that holds capacity: attempts, their tasks, and shares of devices."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.columns import Nodes
from atoll.core.state.ledger_kernels import Uses
from atoll.core.state.ragged import offsets, spans

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_INTS, _FLOATS, _BOOLS = 6, 8, 2
"""Kinds of the columns of `Runs`, in their order."""
TASK_COLUMNS: Final = {
    "node": True, "rank": True, "group": True, "cpu": True, "memory": True,
    "device": False, "blocks": False, "bits": False, "units": False,
}  # fmt: skip
"""True: one entry per task; False: one per share."""


class Runs(NamedTuple):
    """One entry per slot."""

    attempt: Ints
    job: Ints
    queue: Ints
    """Number in `Running.queues`."""
    cluster: Ints
    """Number as in `Nodes.cluster`."""
    priority: Ints
    preemptions: Ints
    submitted_at: Floats
    started_at: Floats
    ends_at: Floats
    """Start and time limit: it ends by then; NEVER when it has no limit."""
    checkpoint_s: Floats
    """Its interval; 0: it keeps nothing when it is stopped."""
    restart_s: Floats
    grace_s: Floats
    deadline_at: Floats
    """0: none."""
    immune_until: Floats
    guaranteed: Bools
    preemptible: Bools


class RunTasks(NamedTuple):
    """T tasks with G shares: slot s has tasks first_task[s] up to first_task[s + 1], and so on."""

    first_task: Ints
    node: Ints
    """Id; rows move when nodes come, ids do not: see `rows_of`."""
    rank: Ints
    group: Ints
    cpu: Ints
    memory: Ints
    first_grant: Ints
    device: Ints
    blocks: Ints
    bits: Ints
    units: Ints
    """What the share costs of a queue's limit, in 1/56 block."""


def uses_of(tasks: RunTasks, slots: Ints, nodes: Nodes | None = None) -> Uses:
    """What slots use, one gang per slot; rows are those of `nodes`, without them node ids."""
    each = spans(tasks.first_task, slots)
    grants = spans(tasks.first_grant, each)
    node = tasks.node[each]
    return Uses(
        first_task=offsets(np.diff(tasks.first_task)[slots]),
        row=node if nodes is None else rows_of(nodes, node),
        cpu=tasks.cpu[each],
        memory=tasks.memory[each],
        first_grant=offsets(np.diff(tasks.first_grant)[each]),
        device=tasks.device[grants],
        blocks=tasks.blocks[grants],
        bits=tasks.bits[grants],
    )


def rows_of(nodes: Nodes, ids: Ints) -> Ints:
    """Rows of nodes by id; all of them must be there."""
    return np.searchsorted(nodes.id, ids)


def leading(tasks: RunTasks, count: int) -> RunTasks:
    """What the first so many slots have, without a copy."""
    end = int(tasks.first_task[count])
    grants = int(tasks.first_grant[end])
    cut = {name: end if per_task else grants for name, per_task in TASK_COLUMNS.items()}
    cut |= {"first_task": count + 1, "first_grant": end + 1}
    return RunTasks(**{name: getattr(tasks, name)[:size] for name, size in cut.items()})


def empty_runs(size: int) -> Runs:
    """Zeros for so many slots."""
    kinds = [np.int64] * _INTS + [np.float64] * _FLOATS + [np.bool_] * _BOOLS
    return Runs._make(np.zeros(size, kind) for kind in kinds)


def empty_tasks(runs: int, tasks: int, grants: int) -> RunTasks:
    """Zeros for so many slots, tasks and shares."""
    sizes = {name: tasks if per_task else grants for name, per_task in TASK_COLUMNS.items()}
    sizes |= {"first_task": runs + 1, "first_grant": tasks + 1}
    return RunTasks(**{name: np.zeros(size, np.int64) for name, size in sizes.items()})
