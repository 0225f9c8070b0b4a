"""Capacity that is held for named jobs while their victims end."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import AttemptId, JobId, QueueName, job_of
from atoll.core.model.plan import Nomination, PendingJob
from atoll.core.state.columns import Models, Nodes
from atoll.core.state.ledger import Holding, Ledger, flatten
from atoll.core.state.ledger_kernels import Uses, give_tasks, take_tasks
from atoll.core.state.limits import ALL_KINDS, Limits
from atoll.core.state.node_table import NodeTable
from atoll.core.state.queue_tree import QueueTree
from atoll.core.state.shares import DEVICES, Shares, amounts_of

_NOBODY = AttemptId(0)


@dataclass(frozen=True, slots=True, eq=False)
class Hold:
    """A nomination in a snapshot, whose free columns are already without what it holds."""

    nomination: Nomination
    job: PendingJob
    uses: Uses
    """One gang, by rows of the snapshot."""
    own_bits: NDArray[np.int64]
    """Slices by share that nobody has just now: those come free when the hold is given back."""

    def give_back(self, nodes: Nodes) -> None:
        """Let its capacity be taken, as far as no victim has it."""
        give_tasks(nodes, self.uses._replace(bits=self.own_bits), 0, len(self.uses.row))

    def take(self, nodes: Nodes) -> None:
        """Hold its capacity again."""
        take_tasks(nodes, self.uses, 0, len(self.uses.row))


class HoldBook:
    """Nominations of a world; the ledger has those that are in force."""

    def __init__(self, table: NodeTable, ledger: Ledger) -> None:
        self._table = table
        self._ledger = ledger
        self.first: set[QueueName] = set()
        """Queues of victims whose capacity was held for nothing: theirs is the first try."""

    def set(self, nominations: Iterable[Nomination]) -> None:
        """Replace all nominations; those that name what is not there (any more) are left out."""
        self._ledger.nominations = {n.job: n for n in nominations if self._is_possible(n)}

    def add(self, nominations: Iterable[Nomination]) -> None:
        """Enter or replace nominations by job."""
        self.set([*self._ledger.nominations.values(), *nominations])

    def used(self, jobs: Iterable[JobId]) -> None:
        """Jobs took what was held for them."""
        for job in jobs:
            self._ledger.nominations.pop(job, None)

    def lapse(self, jobs: Iterable[JobId], pending: Mapping[JobId, QueueName]) -> bool:
        """End holds unused: the victims' queues come first once; True when there was one.

        `pending`: queues of those victims that queue again.
        """
        ended = [n for job in jobs if (n := self._ledger.nominations.pop(job, None)) is not None]
        for nomination in ended:
            for victim in nomination.victims:
                held = self._ledger.holdings.get(victim)
                queue = held.queue if held else pending.get(job_of(victim))
                self.first.update([queue] if queue else [])
        return bool(ended)

    def overdue(self, now: float) -> list[JobId]:
        """Jobs whose hold is over at wall time `now`."""
        return [job for job, n in self._ledger.nominations.items() if n.until <= now]

    def freeze(self, nodes: Nodes, jobs: Mapping[JobId, PendingJob]) -> tuple[Hold, ...]:
        """Take what is held from a snapshot's free columns. `jobs`: the nominated ones."""
        slices = nodes.slices.copy()
        wanted = sorted(self._ledger.nominations.items())
        holds = [_hold(n, jobs[j], self._table, slices=slices) for j, n in wanted if j in jobs]
        for hold in holds:
            hold.take(nodes)
        return tuple(holds)

    def _is_possible(self, nomination: Nomination) -> bool:
        width = self._table.nodes.model.shape[1]
        return all(
            task.node in self._table.row_of and all(g.index < width for g in task.devices)
            for task in nomination.tasks
        )


def charged(
    holds: Sequence[Hold], limits: Limits, shares: Shares, *, tree: QueueTree, table: NodeTable
) -> tuple[Limits, Shares]:
    """Limits and shares in which what is held counts as used by those that it is held for."""
    if not holds:
        return limits, shares
    used, held = limits.used.copy(), shares.held.copy()
    for hold in holds:
        queue, kinds = hold.nomination.queue, held.shape[1] - DEVICES
        amounts = _amounts(hold, table.nodes, table.arrays()[0], kinds=kinds)
        held[list(tree.chain(tree(queue)))] += amounts
        used += _by_limit(amounts, queue, limits)
    return replace(limits, used=used), replace(shares, held=held)


def charge_of(
    hold: Hold, limits: Limits, *, nodes: Nodes, models: Models, kinds: int
) -> NDArray[np.int64]:
    """(limits) what a hold takes of each, in 1/56 block; `kinds`: how many there are."""
    amounts = _amounts(hold, nodes, models, kinds=kinds)
    return _by_limit(amounts, hold.nomination.queue, limits)


def _by_limit(amounts: NDArray[np.int64], queue: QueueName, limits: Limits) -> NDArray[np.int64]:
    units, devices = np.zeros_like(limits.used), amounts[DEVICES:]
    for number in limits.of(queue):
        kind = int(limits.kind[number])
        units[number] = devices.sum() if kind == ALL_KINDS else devices[kind]
    return units


def _hold(
    nomination: Nomination, job: PendingJob, table: NodeTable, *, slices: NDArray[np.int16]
) -> Hold:
    uses = flatten([nomination.tasks], table)
    rows = np.repeat(uses.row, np.diff(uses.first_grant))
    return Hold(nomination, job, uses, uses.bits & ~slices[rows, uses.device].astype(np.int64))


def _amounts(hold: Hold, nodes: Nodes, models: Models, *, kinds: int) -> NDArray[np.int64]:
    nomination = hold.nomination
    holding = Holding(_NOBODY, nomination.queue, nomination.cluster, nomination.tasks)
    amounts = amounts_of([holding], hold.uses, model=nodes.model, models=models, kinds=kinds)[0]
    row: NDArray[np.int64] = amounts[0]
    return row
