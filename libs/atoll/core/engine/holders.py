"""Who holds what a waiting job needs, and until when at the latest."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import AttemptId, ClusterName, QueueName
from atoll.core.model.plan import GangRequest
from atoll.core.model.resources import ANY_KIND
from atoll.core.state.mig import UNITS_PER_BLOCK
from atoll.core.state.ragged import spans
from atoll.core.state.run_columns import rows_of
from atoll.core.state.running import NEVER
from atoll.core.state.snapshot import Snapshot

Ints = NDArray[np.int64]
MOST: Final = 8


@dataclass(frozen=True, slots=True)
class Holder:
    """Running work, and what it holds of the kinds that a job asks for."""

    attempt: AttemptId
    queue: QueueName
    cluster: ClusterName
    amount: int
    unit: str
    """`blocks`, or `milli-CPU` for a job that asks for no devices."""
    nodes: int
    until: float
    """Unix seconds at which it ends at the latest; 0: nobody knows."""
    stopping: bool


def holders(snapshot: Snapshot, request: GangRequest, *, most: int = MOST) -> tuple[Holder, ...]:
    """Those that end first, then those that hold the most."""
    running = snapshot.running
    slots = running.slots()
    if not len(slots):
        return ()
    kinds = _kinds(snapshot, request)
    amounts = _cpu(snapshot, slots) if kinds is None else _units(snapshot, slots, kinds)
    ends = np.where(running.stopping[slots], 0.0, running.runs.ends_at[slots])
    chosen = np.flatnonzero(amounts > 0)
    order = np.lexsort((running.runs.attempt[slots[chosen]], -amounts[chosen], ends[chosen]))
    unit = "milli-CPU" if kinds is None else "blocks"
    return tuple(
        _holder(snapshot, int(slots[at]), int(amounts[at]), unit=unit)
        for at in chosen[order[:most]].tolist()
    )


def _holder(snapshot: Snapshot, slot: int, amount: int, *, unit: str) -> Holder:
    running = snapshot.running
    runs, tasks = running.runs, running.tasks
    mine = tasks.node[tasks.first_task[slot] : tasks.first_task[slot + 1]]
    ends = float(runs.ends_at[slot])
    return Holder(
        attempt=AttemptId(int(runs.attempt[slot])),
        queue=running.queues.values[int(runs.queue[slot])],
        cluster=snapshot.clusters[int(runs.cluster[slot])].name,
        amount=amount,
        unit=unit,
        nodes=len(np.unique(mine)),
        until=0.0 if ends == NEVER else ends,
        stopping=bool(running.stopping[slot]),
    )


def _kinds(snapshot: Snapshot, request: GangRequest) -> set[int] | None:
    """Numbers of the device kinds that would do; None: it asks for none."""
    devices = [shape.device for group in request.groups for shape in group.shapes]
    names = {device.kind for device in devices if device is not None}
    if not names:
        return None
    if ANY_KIND in names:
        return set(snapshot.kinds.values())
    return {snapshot.kinds[name] for name in names if name in snapshot.kinds}


def _cpu(snapshot: Snapshot, slots: Ints) -> Ints:
    tasks = snapshot.running.tasks
    each = spans(tasks.first_task, slots)
    return _summed(tasks.cpu[each], np.diff(tasks.first_task)[slots])


def _units(snapshot: Snapshot, slots: Ints, kinds: set[int]) -> Ints:
    """Blocks of some kinds by slot, slices by what they charge."""
    tasks, nodes = snapshot.running.tasks, snapshot.nodes
    each = spans(tasks.first_task, slots)
    shares = np.diff(tasks.first_grant)[each]
    grants = spans(tasks.first_grant, each)
    row = np.repeat(rows_of(nodes, tasks.node[each]), shares)
    kind = snapshot.hardware.models.kind[nodes.model[row, tasks.device[grants]]]
    units = np.where(np.isin(kind, list(kinds)), tasks.units[grants], 0)
    of_tasks = _summed(units, shares)
    of_slots = _summed(of_tasks, np.diff(tasks.first_task)[slots])
    return -(-of_slots // UNITS_PER_BLOCK)


def _summed(values: Ints, sizes: Ints) -> Ints:
    place = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(place, values, len(sizes)).astype(np.int64)
