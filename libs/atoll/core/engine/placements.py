"""Turns the journal of a cycle into placements."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import AttemptId, JobId, NodeId, attempt_id
from atoll.core.model.plan import GangPlacement, TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.mig import MEDIA_BIT
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.statement import Statement

Ints = NDArray[np.int64]
Grants = tuple[DeviceGrant, ...]


class Assembler:
    """Reads placements out of a statement's journal."""

    def __init__(self, snapshot: Snapshot, statement: Statement) -> None:
        self._snapshot = snapshot
        self._journal = statement.journal
        size = statement.checkpoint()
        self._rows = statement.journal.uses.row[:size]
        self._job = statement.journal.job[:size]
        self._start = np.flatnonzero(np.diff(self._job, prepend=-1))

    def placements(self) -> tuple[GangPlacement, ...]:
        """One per job, in the order in which they were placed."""
        queue, index = self._snapshot.queue, self._job[self._start]
        numbers = np.searchsorted(queue.first, index, side="right") - 1
        views = [queue.classes[number] for number in numbers.tolist()]
        jobs = [JobId(job) for job in queue.job[index].tolist()]
        # By place, as keywords would take as long as all the rest.
        return tuple(
            map(
                GangPlacement,
                jobs,
                queue.revision[index].tolist(),
                self._attempts(jobs, index),
                [self._snapshot.clusters[number].name for number in self._clusters()],
                [view.queue for view in views],
                [view.request for view in views],
                queue.submitted_at[index].tolist(),
                self._gangs(),
                [queue.trace[at] for at in index.tolist()],
                [view.priority for view in views],
                queue.deadline_at[index].tolist(),
                queue.guaranteed[index].tolist(),
                queue.preemptions[index].tolist(),
            )
        )

    def _attempts(self, jobs: list[JobId], index: Ints) -> Iterator[AttemptId]:
        return map(attempt_id, jobs, (self._snapshot.queue.attempts[index] + 1).tolist())

    def _clusters(self) -> list[int]:
        clusters: list[int] = self._snapshot.nodes.cluster[self._rows[self._start]].tolist()
        return clusters

    def _gangs(self) -> Iterator[tuple[TaskPlacement, ...]]:
        order = self._order()
        bounds = [*self._start.tolist(), len(order)]
        ranks = np.arange(len(order)) - np.repeat(self._start, np.diff(bounds))
        rows, uses = self._rows[order], self._journal.uses
        tasks = list(
            map(
                TaskPlacement,
                self._journal.group[order].tolist(),
                ranks.tolist(),
                [NodeId(node) for node in self._snapshot.nodes.id[rows].tolist()],
                [self._snapshot.names[row] for row in rows.tolist()],
                uses.cpu[order].tolist(),
                uses.memory[order].tolist(),
                self._grants(order),
            )
        )
        return (tuple(tasks[start:end]) for start, end in pairwise(bounds))

    def _order(self) -> Ints:
        """Operations job by job: the groups in order, and in a group the leaves of the topology."""
        size = len(self._rows)
        if len(self._start) == size:
            return np.arange(size)
        job = np.repeat(np.arange(len(self._start)), np.diff(np.append(self._start, size)))
        group = self._journal.group[:size]
        order: Ints = np.lexsort((self._rows, *self._leaves(job), group, job))
        return order

    def _leaves(self, job: Ints) -> list[Ints]:
        """By level, the narrowest first: the first row of each one's job in the same domain."""
        by_row = np.argsort(self._rows, kind="stable")
        columns = [column for _, column in reversed(self._snapshot.levels)]
        path, leaves = job, []
        for column in columns:
            domain = self._snapshot.nodes.domain[self._rows, column].astype(np.int64) + 1
            _, path = np.unique(path * (domain.max(initial=0) + 1) + domain, return_inverse=True)
            _, first, place = np.unique(path[by_row], return_index=True, return_inverse=True)
            leaf = np.empty_like(path)
            leaf[by_row] = self._rows[by_row][first][place]
            leaves.append(leaf)
        return leaves[::-1]

    def _grants(self, order: Ints) -> Iterator[Grants]:
        uses, values = self._journal.uses, self._snapshot.shape_values
        bounds = uses.first_grant[: len(order) + 1].tolist()
        shares = bounds[-1]
        device, blocks = uses.device[:shares].tolist(), uses.blocks[:shares].tolist()
        bits, shape = uses.bits[:shares].tolist(), self._journal.shape[: len(order)].tolist()
        known: dict[tuple[int, ...], Grants] = {}
        for at in order.tolist():
            first, end = bounds[at], bounds[at + 1]
            key = (shape[at], *device[first:end], *blocks[first:end], *bits[first:end])
            grants = known.get(key)
            if grants is None:
                value = values[shape[at]]
                profile = value.device.profile if value and value.device else ""
                grants = known[key] = _granted(profile, key[1:])
            yield grants


@lru_cache(maxsize=4096)
def _granted(profile: str, parts: tuple[int, ...]) -> Grants:
    """`parts`: the devices of all shares, then their blocks, then their bits."""
    count = len(parts) // 3
    shares = zip(parts[:count], parts[count : 2 * count], parts[2 * count :], strict=True)
    return tuple(
        DeviceGrant(index, blocks=amount, slice_mask=mask & ~MEDIA_BIT, profile=profile)
        for index, amount, mask in sorted(shares)
    )
