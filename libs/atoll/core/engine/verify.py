"""The check before a commit: by the ledger's arithmetic, and knowing nothing of how a plan is made.

What the ledger cannot know (a device that broke a second ago) the agent
answers with REJECTED.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import JobId, job_of
from atoll.core.model.plan import GangPlacement, GroupRequest, Plan, TaskPlacement
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceGrant, DeviceRequest, TaskShape
from atoll.core.state.columns import scratch_copy
from atoll.core.state.ledger import Ledger, flatten
from atoll.core.state.ledger_kernels import (
    BLOCKS_SHORT,
    CPU_SHORT,
    DOUBLE_USE,
    FINE,
    MEMORY_SHORT,
    WRONG_MODE,
    take_gangs,
)
from atoll.core.state.node_table import NodeTable

_WORDS = {
    DOUBLE_USE: "a share of a device has two owners",
    CPU_SHORT: "a node has too little CPU",
    MEMORY_SHORT: "a node has too little memory",
    BLOCKS_SHORT: "a device has too few blocks",
    WRONG_MODE: "a device cannot be used in this way",
}


def verify(plan: Plan, ledger: Ledger) -> None:
    """Raise DomainError PLAN_INVALID unless every placement stands beside all the others."""
    wrong = refused(plan.placements, ledger)
    if wrong:
        job, why = next(iter(wrong.items()))
        raise DomainError(
            f"job {job} cannot be placed as planned: {why}",
            code=ErrorCode.PLAN_INVALID,
            metadata={"job": str(job), "refused": str(len(wrong))},
        )


def refused(placements: Sequence[GangPlacement], ledger: Ledger) -> dict[JobId, str]:
    """Which placements do not stand, and why; the others stand without them."""
    table = ledger.table
    wrong = dict(_repeated(placements))
    for placement in placements:
        why = misshapen(placement) or _misplaced(placement, table)
        if why:
            wrong.setdefault(placement.job, why)
    sound = [p for p in placements if p.job not in wrong]
    uses = flatten([p.tasks for p in sound], table)
    codes = take_gangs(scratch_copy(table.nodes), table.arrays()[0].mode, uses, True)
    for at in np.flatnonzero(codes != FINE).tolist():
        wrong[sound[at].job] = _WORDS[int(codes[at])]
    return wrong


def misshapen(placement: GangPlacement) -> str:
    """What of a placement is not as its job asked; empty when all is."""
    tasks = placement.tasks
    if job_of(placement.attempt) != placement.job:
        return "the attempt is another job's"
    if sorted(task.rank for task in tasks) != list(range(len(tasks))):
        return "ranks are not 0, 1, 2 and so on"
    for number, group in enumerate(placement.request.groups):
        why = _misshapen_group(group, [task for task in tasks if task.group == number])
        if why:
            return why
    known = range(len(placement.request.groups))
    return "" if all(task.group in known for task in tasks) else "a task is of no group"


def _repeated(placements: Sequence[GangPlacement]) -> Iterable[tuple[JobId, str]]:
    counts = Counter(p.job for p in placements)
    return ((job, "the job is placed twice") for job, count in counts.items() if count > 1)


def _misshapen_group(group: GroupRequest, tasks: Sequence[TaskPlacement]) -> str:
    if not group.min_count <= len(tasks) <= group.count:
        return f"the gang is not whole: {len(tasks)} tasks of {group.min_count}"
    fits = any(all(_as_asked(task, shape) for task in tasks) for shape in group.shapes)
    return "" if fits else "tasks do not have what their group asks for"


def _as_asked(task: TaskPlacement, shape: TaskShape) -> bool:
    return (
        task.cpu_milli == shape.cpu_milli
        and task.memory_bytes == shape.memory_bytes
        and _devices_as_asked(task.devices, shape.device)
    )


def _devices_as_asked(grants: Sequence[DeviceGrant], device: DeviceRequest | None) -> bool:
    if device is None:
        return not grants
    if device.profile:
        return len(grants) == device.count and all(
            g.profile == device.profile and g.slice_mask and not g.blocks for g in grants
        )
    if any(g.slice_mask or g.profile for g in grants):
        return False
    if device.whole:
        whole = {g.index for g in grants if g.blocks == BLOCKS_PER_DEVICE}
        return len(whole) == len(grants) == device.count
    wanted = [device.blocks] if not device.memory_bytes else range(1, BLOCKS_PER_DEVICE + 1)
    return len(grants) == 1 and grants[0].blocks in wanted


def _misplaced(placement: GangPlacement, table: NodeTable) -> str:
    rows = [table.row(task.node) for task in placement.tasks]
    known = np.array([row for row in rows if row is not None], np.int64)
    if len(known) != len(rows):
        return "a node is not known"
    cluster = table.clusters.number.get(placement.cluster)
    if any(table.nodes.cluster[known] != cluster):
        return "a node is of another cluster"
    width = table.nodes.model.shape[1]
    if any(g.index >= width for task in placement.tasks for g in task.devices):
        return "a device does not exist"
    topology = placement.request.topology
    if topology is None or not topology.required:
        return ""
    column = table.levels.number.get(topology.level)
    domains = set() if column is None else set(table.nodes.domain[known, column].tolist())
    return "" if len(domains) == 1 and -1 not in domains else f"not in one {topology.level}"
