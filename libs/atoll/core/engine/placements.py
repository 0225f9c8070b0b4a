"""Turns the journal of a cycle into placements."""

from functools import lru_cache

import numpy as np

from atoll.core.model.ids import JobId, NodeId, attempt_id
from atoll.core.model.plan import GangPlacement, TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.mig import MEDIA_BIT
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement


class Assembler:
    """Reads placements out of a statement's journal."""

    def __init__(self, snapshot: Snapshot, statement: Statement) -> None:
        self._snapshot = snapshot
        size = statement.checkpoint()
        journal, uses = statement.journal, statement.journal.uses
        self._job = journal.job[:size]
        self._rows: list[int] = uses.row[:size].tolist()
        self._groups: list[int] = journal.group[:size].tolist()
        self._cpu: list[int] = uses.cpu[:size].tolist()
        self._memory: list[int] = uses.memory[:size].tolist()
        self._first: list[int] = uses.first_grant[: size + 1].tolist()
        shares = self._first[-1]
        self._device: list[int] = uses.device[:shares].tolist()
        self._blocks: list[int] = uses.blocks[:shares].tolist()
        self._bits: list[int] = uses.bits[:shares].tolist()
        self._profile: list[int] = journal.shape[:size].tolist()
        self._ids: list[int] = snapshot.nodes.id.tolist()

    def placements(self) -> tuple[GangPlacement, ...]:
        """One per job, in the order in which they were placed."""
        job = self._job
        starts = np.flatnonzero(np.diff(job, prepend=-1))
        ends = np.append(starts[1:], len(job))
        queue = self._snapshot.queue
        groups = (np.searchsorted(queue.first, job[starts], side="right") - 1).tolist()
        return tuple(
            self._placement(index, queue.classes[group], range(start, end))
            for index, group, start, end in zip(
                job[starts].tolist(), groups, starts.tolist(), ends.tolist(), strict=True
            )
        )

    def _placement(self, index: int, view: ClassView, span: range) -> GangPlacement:
        queue = self._snapshot.queue
        job = JobId(int(queue.job[index]))
        cluster = int(self._snapshot.nodes.cluster[self._rows[span.start]])
        return GangPlacement(
            job=job,
            revision=int(queue.revision[index]),
            attempt=attempt_id(job, int(queue.attempts[index]) + 1),
            cluster=self._snapshot.clusters[cluster].name,
            queue=view.queue,
            request=view.request,
            submitted_at=float(queue.submitted_at[index]),
            tasks=tuple(self._task(at, rank) for rank, at in enumerate(self._ranked(span))),
            trace=queue.trace[index],
        )

    def _ranked(self, span: range) -> list[int]:
        if len(span) == 1:
            return [span.start]
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
            node=NodeId(self._ids[row]),
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
