"""Turns the journal of a cycle into placements."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from atoll.core.model.ids import JobId, NodeId, attempt_id
from atoll.core.model.plan import GangPlacement, TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.mig import MEDIA_BIT
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement


class _Placed(NamedTuple):
    view: ClassView
    trace: str
    job: int
    revision: int
    submitted_at: float
    attempts: int
    deadline_at: float
    guaranteed: bool
    preemptions: int
    cluster: int
    start: int
    """First operation of the job in the journal."""
    end: int


class Assembler:
    """Reads placements out of a statement's journal."""

    def __init__(self, snapshot: Snapshot, statement: Statement) -> None:
        self._snapshot = snapshot
        size = statement.checkpoint()
        journal, uses = statement.journal, statement.journal.uses
        self._job = journal.job[:size]
        self._row_array = uses.row[:size]
        self._rows: list[int] = self._row_array.tolist()
        self._groups: list[int] = journal.group[:size].tolist()
        self._cpu: list[int] = uses.cpu[:size].tolist()
        self._memory: list[int] = uses.memory[:size].tolist()
        self._first: list[int] = uses.first_grant[: size + 1].tolist()
        shares = self._first[-1]
        self._device: list[int] = uses.device[:shares].tolist()
        self._blocks: list[int] = uses.blocks[:shares].tolist()
        self._bits: list[int] = uses.bits[:shares].tolist()
        self._profile: list[int] = journal.shape[:size].tolist()
        self._node: list[int] = snapshot.nodes.id[self._row_array].tolist()

    def placements(self) -> tuple[GangPlacement, ...]:
        """One per job, in the order in which they were placed."""
        job = self._job
        starts = np.flatnonzero(np.diff(job, prepend=-1))
        ends = np.append(starts, len(job))[1:]
        queue, nodes = self._snapshot.queue, self._snapshot.nodes
        index = job[starts]
        groups = np.searchsorted(queue.first, index, side="right") - 1
        columns = (
            [queue.classes[group] for group in groups.tolist()],
            [queue.trace[at] for at in index.tolist()],
            queue.job[index].tolist(),
            queue.revision[index].tolist(),
            queue.submitted_at[index].tolist(),
            queue.attempts[index].tolist(),
            queue.deadline_at[index].tolist(),
            queue.guaranteed[index].tolist(),
            queue.preemptions[index].tolist(),
            nodes.cluster[self._row_array[starts]].tolist(),
            starts.tolist(),
            ends.tolist(),
        )
        return tuple(map(self._placement, map(_Placed._make, zip(*columns, strict=True))))

    def _placement(self, placed: _Placed) -> GangPlacement:
        start, end = placed.start, placed.end
        order = [start] if end == start + 1 else self._ranked(range(start, end))
        job, view = JobId(placed.job), placed.view
        return GangPlacement(
            job=job,
            revision=placed.revision,
            attempt=attempt_id(job, placed.attempts + 1),
            cluster=self._snapshot.clusters[placed.cluster].name,
            queue=view.queue,
            request=view.request,
            submitted_at=placed.submitted_at,
            tasks=tuple([self._task(at, rank) for rank, at in enumerate(order)]),
            trace=placed.trace,
            priority=view.priority,
            deadline_at=placed.deadline_at,
            guaranteed=placed.guaranteed,
            preemptions=placed.preemptions,
        )

    def _ranked(self, span: range) -> list[int]:
        leaves = self._leaves(span)
        # Ranks follow the groups, and in a group the leaves of the topology.
        return sorted(span, key=lambda at: (self._groups[at], leaves[at], self._rows[at]))

    def _leaves(self, span: range) -> dict[int, tuple[int, ...]]:
        columns = [column for _, column in reversed(self._snapshot.levels)]
        domain = self._snapshot.nodes.domain
        first: dict[tuple[int, ...], int] = {}
        paths = {at: tuple(domain[self._rows[at], columns].tolist()) for at in span}
        for at in sorted(span, key=lambda at: self._rows[at]):
            for depth in range(len(columns)):
                first.setdefault(paths[at][: depth + 1], self._rows[at])
        return {
            at: tuple(first[path[: depth + 1]] for depth in range(len(columns)))
            for at, path in paths.items()
        }

    def _task(self, at: int, rank: int) -> TaskPlacement:
        row, first, end = self._rows[at], self._first[at], self._first[at + 1]
        return TaskPlacement(
            group=self._groups[at],
            rank=rank,
            node=NodeId(self._node[at]),
            node_name=self._snapshot.names[row],
            cpu_milli=self._cpu[at],
            memory_bytes=self._memory[at],
            devices=self._devices(at, first, end) if end > first else (),
        )

    def _devices(self, at: int, first: int, end: int) -> tuple[DeviceGrant, ...]:
        shape = self._snapshot.task_shape(self._profile[at])
        return _grants(
            shape.device.profile if shape.device else "",
            tuple(self._device[first:end]),
            blocks=tuple(self._blocks[first:end]),
            bits=tuple(self._bits[first:end]),
        )


@lru_cache(maxsize=4096)
def _grants(
    profile: str, devices: tuple[int, ...], *, blocks: tuple[int, ...], bits: tuple[int, ...]
) -> tuple[DeviceGrant, ...]:
    return tuple(
        DeviceGrant(index, blocks=amount, slice_mask=mask & ~MEDIA_BIT, profile=profile)
        for index, amount, mask in sorted(zip(devices, blocks, bits, strict=True))
    )
