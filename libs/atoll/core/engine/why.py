"""Why a request is not placed: what stands in its way on every node, with numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.domain_kernels import sum_up
from atoll.core.engine.domains import ladder
from atoll.core.engine.gangs import most_on_a_node
from atoll.core.engine.masks import NO_QUEUE, Masks
from atoll.core.engine.rented.words import rented_reasons
from atoll.core.engine.room_kernels import count_room
from atoll.core.engine.score_kernels import Scoring
from atoll.core.engine.sentences import (
    CLUSTER_CODES,
    SHORTAGES,
    UNCHANGING,
    advice,
    cluster_reason,
    gang_reason,
    node_reason,
    spread_reason,
    together_reason,
)
from atoll.core.engine.why_kernels import blockers
from atoll.core.engine.windows.bookings import claimant
from atoll.core.engine.windows.words import own_booking, reserved
from atoll.core.model.ids import QueueName
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.reason import Reason, ReasonCode
from atoll.core.model.resources import TaskShape
from atoll.core.policies.interfaces import MAY_GO, WHY
from atoll.core.state.apart import domain_keys
from atoll.core.state.columns import Nodes
from atoll.core.state.snapshot import Snapshot

Codes = NDArray[np.int8]
Counts = NDArray[np.int64]
Look = tuple[Codes, Counts]
"""(N) the place in WHY of what keeps a task off each node, and its free devices."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Nodes as they are looked at, and how."""

    snapshot: Snapshot
    nodes: Nodes
    scoring: Scoring
    masks: Masks
    advises: bool = False
    """Whether it is worth the time to find out what would help."""
    queue: QueueName = NO_QUEUE
    """Of the job that is looked at."""

    def codes(self, request: GangRequest, shape: TaskShape, number: int) -> Look:
        """What keeps a task of a shape off each node."""
        codes = self.masks.refusals(request, shape, self.queue).copy()
        devices = np.zeros(len(codes), np.int64)
        rows = np.flatnonzero(codes == MAY_GO)
        codes[rows], devices[rows] = blockers(self.nodes, self.scoring, number, rows)
        return codes, devices

    def there(self) -> NDArray[np.bool_]:
        """(N) nodes of clusters that were not forgotten."""
        gone = [number for number, view in enumerate(self.snapshot.clusters) if view.gone]
        return ~np.isin(self.nodes.cluster, gone)

    def hold_when_empty(self, number: int, rows: Counts) -> int:
        """How many of some nodes would hold a task if nothing else ran there."""
        nodes = self.nodes._replace(
            cpu_free=self.nodes.cpu_cap,
            memory_free=self.nodes.memory_cap,
            blocks_free=self.nodes.blocks_cap,
            slices=np.zeros_like(self.nodes.slices),
        )
        return int((blockers(nodes, self.scoring, number, rows)[0] == MAY_GO).sum())

    def room(self, request: GangRequest, shape: TaskShape, *, number: int, most: int) -> Counts:
        """(N) how many tasks each node holds by itself, up to `most`."""
        mask = self.masks.anywhere(request, shape, self.queue)
        counts = np.zeros(len(mask), np.int64)
        rows = np.flatnonzero(mask)
        count_room(self.nodes, self.scoring, number, mask, most, rows, counts)
        return counts


def reasons(
    sight: Sight, request: GangRequest, choices: Sequence[Sequence[int]]
) -> tuple[Reason, ...]:
    """All blockers of a request, the strongest first; it is known not to fit.

    `choices`: by task group, the rows of its alternatives in the shape table of the sight.
    Of alternatives the one with the most room is spoken of.
    """
    found = list(own_booking(sight.masks.bookings, claimant(sight.queue, request)))
    for group, numbers in zip(request.groups, choices, strict=True):
        found.extend(_group_reasons(sight, request, group=group, numbers=numbers))
    return tuple(dict.fromkeys(found)) or (together_reason(),)


def node_reasons(
    sight: Sight, request: GangRequest, shape: TaskShape, *, number: int, look: Look
) -> list[Reason]:
    """One reason per blocker (and cluster, where that is closed), the most nodes first.

    What no node of a kind will ever change (its labels, its devices) comes behind what may pass.
    """
    codes, devices = look
    who, there = claimant(sight.queue, request), sight.there()
    if not there.any():
        return [Reason(ReasonCode.NO_CLUSTER, "no cluster has reported a node yet")]
    found: list[Reason] = []
    for at in np.unique(codes[there & (codes != MAY_GO)]).tolist():
        rows, code = np.flatnonzero(there & (codes == at)), WHY[at]
        if code is ReasonCode.RESERVED:
            found.extend(reserved(sight.masks.bookings, who, rows))
        elif code is ReasonCode.RENTED:
            found.extend(rented_reasons(sight.snapshot, request, sight.queue, rows=rows))
        elif code in CLUSTER_CODES:
            found.extend(_closed(sight, code, rows))
        elif code is not None:
            found.append(_short(sight, shape, number, code=code, rows=rows, devices=devices))
    return sorted(found, key=_strength)


def _strength(reason: Reason) -> tuple[bool, bool, int, ReasonCode, str]:
    # What is rented comes last: it is there for a while, and seldom for everybody.
    rented = reason.code is ReasonCode.RENTED
    return rented, reason.code in UNCHANGING, -reason.count, reason.code, reason.cluster


def _group_reasons(
    sight: Sight, request: GangRequest, *, group: GroupRequest, numbers: Sequence[int]
) -> list[Reason]:
    looks = [
        (shape, number, sight.codes(request, shape, number))
        for shape, number in zip(group.shapes, numbers, strict=True)
    ]
    # The first of those that fit on most nodes: max keeps the first of equals.
    shape, number, look = max(looks, key=lambda each: int((each[2][0] == MAY_GO).sum()))
    gang = []
    if group.count > 1 or request.topology is not None:
        rooms = sight.room(request, shape, number=number, most=most_on_a_node(group))
        gang = list(_gang_reasons(sight, request, group=group, rooms=rooms))
    if not gang and (look[0] == MAY_GO).any():
        return []
    return gang + node_reasons(sight, request, shape, number=number, look=look)


def _gang_reasons(
    sight: Sight, request: GangRequest, *, group: GroupRequest, rooms: Counts
) -> Iterator[Reason]:
    in_cluster = _most(sight.nodes.cluster, rooms)
    if group.min_count > 1 and in_cluster < group.min_count:
        yield gang_reason(
            ReasonCode.GANG_TOO_WIDE, group.min_count, in_cluster, where="one cluster"
        )
    elif group.spread is not None:
        yield from _spread_reasons(sight, group, rooms)
    if request.topology is None or not request.topology.required:
        return
    level = request.topology.level
    steps = ladder(sight.snapshot, request.topology, gathers=False).steps
    most = _most(steps[0], rooms) if steps else 0
    if most < group.min_count:
        yield gang_reason(ReasonCode.NO_DOMAIN_FITS, group.min_count, most, where=f"one {level}")


def _spread_reasons(sight: Sight, group: GroupRequest, rooms: Counts) -> Iterator[Reason]:
    spread, nodes = group.spread, sight.nodes
    if spread is None:
        return
    keys = domain_keys(nodes, sight.snapshot.level_column(spread.level))
    first, place = np.unique(keys, return_index=True, return_inverse=True)[1:]
    sums = np.minimum(np.bincount(place, rooms).astype(np.int64), spread.most)
    most = int(np.bincount(nodes.cluster[first], sums).max(initial=0))
    if most < group.min_count:
        yield spread_reason(group.min_count, most, level=spread.level, bound=spread.most)


def _most(domain: NDArray[np.int32], rooms: Counts) -> int:
    return int(sum_up(domain, rooms[None, :])[0].max())


def _closed(sight: Sight, code: ReasonCode, rows: Counts) -> Iterator[Reason]:
    numbers, counts = np.unique(sight.nodes.cluster[rows], return_counts=True)
    for cluster, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        yield cluster_reason(code, sight.snapshot.clusters[cluster].name, count)


def _short(
    sight: Sight, shape: TaskShape, number: int, *, code: ReasonCode, rows: Counts, devices: Counts
) -> Reason:
    available = int(_amounts(sight.nodes, code, devices)[rows].max())
    reason = node_reason(code, shape, available=available, nodes=len(rows))
    if not sight.advises or code not in SHORTAGES:
        return reason
    return replace(reason, help=advice(sight.hold_when_empty(number, rows)))


def _amounts(nodes: Nodes, code: ReasonCode, devices: Counts) -> Counts:
    if code is ReasonCode.CPU_SHORT:
        return nodes.cpu_free
    return nodes.memory_free if code is ReasonCode.MEMORY_SHORT else devices
