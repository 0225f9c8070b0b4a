"""The check before a commit: by the ledger's arithmetic, and knowing nothing of how a plan is made.

What the ledger cannot know (a device that broke a second ago) the agent
answers with REJECTED.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from atoll.core.engine.apart import crowded, too_close
from atoll.core.engine.rented.cost import too_dear
from atoll.core.engine.verify_holds import beside_holds, verify_holds
from atoll.core.engine.verify_windows import broken, verify_holds_beside
from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import JobId, job_of
from atoll.core.model.plan import GangPlacement, GroupRequest, Plan, TaskPlacement
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceGrant, DeviceRequest, TaskShape
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


def verify(plan: Plan, ledger: Ledger, *, now: float | None = None) -> None:
    """Raise DomainError PLAN_INVALID unless all placements and holds stand beside each other.

    `now`: wall time at which the plan was made; that of the ledger unless it is given.
    """
    moment = ledger.now if now is None else now
    wrong = refused(plan.placements, ledger, now=moment)
    if wrong:
        job, why = next(iter(wrong.items()))
        raise DomainError(
            f"job {job} cannot be placed as planned: {why}",
            code=ErrorCode.PLAN_INVALID,
            metadata={"job": str(job), "refused": str(len(wrong))},
        )
    verify_holds(plan, ledger)
    verify_holds_beside(plan, ledger, moment)


def refused(
    placements: Sequence[GangPlacement], ledger: Ledger, *, now: float | None = None
) -> dict[JobId, str]:
    """Which placements do not stand, and why; the others stand without them."""
    table, moment = ledger.table, ledger.now if now is None else now
    wrong = dict(_repeated(placements))
    as_asked = _AsAsked()
    for placement in placements:
        why = misshapen(placement, as_asked) or _misplaced(placement, table)
        if ledger.rented:
            why = why or _barred(placement, ledger)
        if why:
            wrong.setdefault(placement.job, why)
    wrong |= too_close([p for p in placements if p.job not in wrong], ledger)
    sound = [p for p in placements if p.job not in wrong] if wrong else placements
    uses = flatten([p.tasks for p in sound], table)
    free = beside_holds(ledger, (p.job for p in placements))
    codes = take_gangs(free, table.arrays()[0].mode, uses, True)
    for at in np.flatnonzero(codes != FINE).tolist():
        wrong[sound[at].job] = _WORDS[int(codes[at])]
    wrong |= {sound[at].job: why for at, why in broken(sound, ledger, moment)}
    return wrong


class _AsAsked:
    """Whether devices are as a shape asks; remembered, for most tasks have the same few."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], bool] = {}

    def __call__(self, task: TaskPlacement, shape: TaskShape) -> bool:
        if task.cpu_milli != shape.cpu_milli or task.memory_bytes != shape.memory_bytes:
            return False
        # Both live as long as the plan that is verified, so their ids are theirs alone.
        key = (id(task.devices), id(shape.device))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _devices_as_asked(task.devices, shape.device)
        return known


def misshapen(
    placement: GangPlacement, as_asked: Callable[[TaskPlacement, TaskShape], bool]
) -> str:
    """What of a placement is not as its job asked; empty when all is."""
    tasks, groups = placement.tasks, placement.request.groups
    if job_of(placement.attempt) != placement.job:
        return "the attempt is another job's"
    if len(tasks) == len(groups) == 1:
        if tasks[0].rank or tasks[0].group:
            return "rank or group of the only task is not 0"
        return _misshapen_group(groups[0], tasks, as_asked)
    if sorted(task.rank for task in tasks) != list(range(len(tasks))):
        return "ranks are not 0, 1, 2 and so on"
    if any(task.group not in range(len(groups)) for task in tasks):
        return "a task is of no group"
    return next(filter(None, _group_faults(placement, as_asked)), "")


def _group_faults(
    placement: GangPlacement, as_asked: Callable[[TaskPlacement, TaskShape], bool]
) -> Iterator[str]:
    for number, group in enumerate(placement.request.groups):
        members = [task for task in placement.tasks if task.group == number]
        yield _misshapen_group(group, members, as_asked)


def _repeated(placements: Sequence[GangPlacement]) -> Iterable[tuple[JobId, str]]:
    counts = Counter(p.job for p in placements)
    return ((job, "the job is placed twice") for job, count in counts.items() if count > 1)


def _misshapen_group(
    group: GroupRequest,
    tasks: Sequence[TaskPlacement],
    as_asked: Callable[[TaskPlacement, TaskShape], bool],
) -> str:
    if not group.min_count <= len(tasks) <= group.count:
        return f"the gang is not whole: {len(tasks)} tasks of {group.min_count}"
    for shape in group.shapes:
        if all(as_asked(task, shape) for task in tasks):
            return ""
    return "tasks do not have what their group asks for"


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
    cluster = table.clusters.number.get(placement.cluster)
    width = table.nodes.model.shape[1]
    clusters = table.nodes.cluster
    for task in placement.tasks:
        row = table.row_of.get(task.node)
        if row is None:
            return "a node is not known"
        if clusters[row] != cluster:
            return "a node is of another cluster"
        for grant in task.devices:
            if not 0 <= grant.index < width:
                return "a device does not exist"
    if close := crowded(placement, table):
        return close
    topology = placement.request.topology
    if topology is None or not topology.required:
        return ""
    return _scattered(placement.tasks, topology.level, table)


def _barred(placement: GangPlacement, ledger: Ledger) -> str:
    """Why a placement is not to be on a rented machine; empty when it is on none."""
    rented, request = ledger.rented, placement.request
    fault = rented.fault(placement.cluster, placement.job, queue=placement.queue, request=request)
    rental = rented.get(placement.cluster)
    return fault or ("" if rental is None else too_dear(rental, request, placement.job))


def _scattered(tasks: Sequence[TaskPlacement], level: str, table: NodeTable) -> str:
    column = table.levels.number.get(level)
    if column is None:
        return f"no node has a {level}"
    rows = [table.row_of[task.node] for task in tasks]
    domains = set(table.nodes.domain[rows, column].tolist())
    return "" if len(domains) == 1 and -1 not in domains else f"not in one {level}"
