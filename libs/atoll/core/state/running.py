"""Work that holds capacity, in columns: what a cycle must know of it to plan around it or stop it.

A slot is written once, when its attempt is placed, and only marked when it is
over, so that snapshots share the columns and copy nothing but the marks. Slots
are not used again: once most are over, the others move to new columns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.model.ids import AttemptId, QueueName, job_of
from atoll.core.model.plan import RunFacts
from atoll.core.state.backlog_kernels import Ended
from atoll.core.state.columns import Nodes
from atoll.core.state.interning import Interner
from atoll.core.state.ledger import Holding
from atoll.core.state.ledger_kernels import Uses
from atoll.core.state.mig import UNITS_PER_BLOCK, grant_units
from atoll.core.state.node_table import NodeTable
from atoll.core.state.ragged import spans
from atoll.core.state.run_columns import (
    TASK_COLUMNS,
    Bools,
    Ints,
    Runs,
    RunTasks,
    empty_runs,
    empty_tasks,
    leading,
    uses_of,
)

NEVER: Final = float("inf")
COMPACT_AT: Final = 1024
"""Slots that are over before it is worth moving the others."""


@dataclass(frozen=True, slots=True)
class Running:
    """All slots at one moment; those that are over are not `live`."""

    live: Bools
    stopping: Bools
    """Told to stop; they hold what they hold until they have."""
    runs: Runs
    tasks: RunTasks
    holdings: Sequence[Holding]
    """By slot; perhaps longer than the columns."""
    queues: Interner[QueueName]
    """May know queues that came later."""

    def slots(self) -> Ints:
        """Slots of work that holds capacity, in the order in which it was placed."""
        return np.flatnonzero(self.live)


class RunningTable:
    """Slots by attempt."""

    def __init__(self) -> None:
        self.queues: Interner[QueueName] = Interner()
        self._slot: dict[AttemptId, int] = {}
        self._live = self._stopping = np.zeros(0, np.bool_)
        self._count = 0
        self._frozen: Running | None = None
        self._begin(16, 16, 16)

    def add(self, holdings: Sequence[Holding], uses: Uses, table: NodeTable) -> None:
        """Enter attempts that are not here; `uses` are their tasks as rows of the table."""
        if not holdings:
            return
        first, end = self._count, self._count + len(holdings)
        self._reserve(len(holdings), len(uses.row), len(uses.device))
        self._write_runs(holdings, slice(first, end), table)
        self._write_tasks(holdings, uses, table.nodes)
        self._live[first:end] = True
        self._slot.update((h.attempt, first + at) for at, h in enumerate(holdings))
        self._holdings.extend(holdings)
        self._count = end
        self._frozen = None

    def remove(self, attempts: Iterable[AttemptId]) -> None:
        """Mark attempts as over; those that are not here are passed over."""
        slots = [s for a in attempts if (s := self._slot.pop(a, None)) is not None]
        if not slots:
            return
        self._live[slots] = False
        self._frozen = None
        over = self._count - len(self._slot)
        if over > COMPACT_AT and over > len(self._slot):
            self._compact()

    def uses(self, attempts: Iterable[AttemptId], nodes: Nodes) -> Uses:
        """What attempts hold that are all here, one gang each; rows are those of `nodes`."""
        slots = np.array([self._slot[attempt] for attempt in attempts], np.int64)
        return uses_of(leading(self._tasks, self._count), slots, nodes)

    def ended(self, attempts: Iterable[AttemptId]) -> Ended:
        """When attempts began that are all here and end now."""
        slots = np.array([self._slot[attempt] for attempt in attempts], np.int64)
        return Ended(self._runs.submitted_at[slots], self._runs.started_at[slots])

    def stop(self, attempts: Iterable[AttemptId]) -> None:
        """Mark attempts as told to stop; those that are not here are passed over."""
        slots = [self._slot[a] for a in attempts if a in self._slot]
        if slots:
            self._stopping[slots] = True
            self._frozen = None

    def freeze(self) -> Running:
        """The slots as they stand."""
        if self._frozen is None:
            count = self._count
            self._frozen = Running(
                live=self._live[:count].copy(),
                stopping=self._stopping[:count].copy(),
                runs=Runs._make(column[:count] for column in self._runs),
                tasks=leading(self._tasks, count),
                holdings=self._holdings,
                queues=self.queues,
            )
        return self._frozen

    def _begin(self, runs: int, tasks: int, grants: int) -> None:
        self._count = 0
        self._live, self._stopping = np.zeros(runs, np.bool_), np.zeros(runs, np.bool_)
        self._runs = empty_runs(runs)
        self._tasks = empty_tasks(runs, tasks, grants)
        self._holdings: list[Holding] = []
        self._frozen = None

    def _write_runs(self, holdings: Sequence[Holding], here: slice, table: NodeTable) -> None:
        facts = [h.run or RunFacts(job_of(h.attempt)) for h in holdings]
        runs = self._runs
        runs.attempt[here] = [h.attempt for h in holdings]
        runs.job[here] = [each.job for each in facts]
        runs.queue[here] = [self.queues(h.queue) for h in holdings]
        runs.cluster[here] = [table.clusters(h.cluster) for h in holdings]
        values = np.array([_numbers(each) for each in facts], np.float64)
        for name, column in zip(_NUMBERS, values.T, strict=True):
            getattr(runs, name)[here] = column

    def _write_tasks(self, holdings: Sequence[Holding], uses: Uses, nodes: Nodes) -> None:
        tasks, count = self._tasks, self._count
        at = int(tasks.first_task[count])
        grant = int(tasks.first_grant[at])
        here, grants = slice(at, at + len(uses.row)), slice(grant, grant + len(uses.device))
        each = [task for holding in holdings for task in holding.tasks]
        tasks.first_task[count + 1 : count + 1 + len(holdings)] = at + uses.first_task[1:]
        tasks.node[here] = nodes.id[uses.row]
        tasks.rank[here] = [task.rank for task in each]
        tasks.group[here] = [task.group for task in each]
        tasks.cpu[here], tasks.memory[here] = uses.cpu, uses.memory
        tasks.first_grant[at + 1 : at + 1 + len(uses.row)] = grant + uses.first_grant[1:]
        tasks.device[grants] = uses.device
        tasks.blocks[grants], tasks.bits[grants] = uses.blocks, uses.bits
        tasks.units[grants] = uses.blocks * UNITS_PER_BLOCK
        if uses.bits.any():
            of = [grant for task in each for grant in task.devices]
            sliced = np.flatnonzero(uses.bits)
            tasks.units[grant + sliced] = [grant_units(of[at]) for at in sliced.tolist()]

    def _reserve(self, runs: int, tasks: int, grants: int) -> None:
        count = self._count
        used_tasks = int(self._tasks.first_task[count])
        used = (count, used_tasks, int(self._tasks.first_grant[used_tasks]))
        have = (len(self._live), len(self._tasks.node), len(self._tasks.device))
        need = [u + more for u, more in zip(used, (runs, tasks, grants), strict=True)]
        if all(n <= h for n, h in zip(need, have, strict=True)):
            return
        # Snapshots keep the old columns.
        old = self._live, self._stopping, self._runs, self._tasks
        sizes = [h if n <= h else 2 * n for n, h in zip(need, have, strict=True)]
        self._live, self._stopping = np.zeros(sizes[0], np.bool_), np.zeros(sizes[0], np.bool_)
        self._runs, self._tasks = empty_runs(sizes[0]), empty_tasks(*sizes)
        new = (self._live, self._stopping, *self._runs, *self._tasks)
        for source, target in zip((*old[:2], *old[2], *old[3]), new, strict=True):
            target[: len(source)] = source

    def _compact(self) -> None:
        live = np.flatnonzero(self._live[: self._count])
        old = self._runs, leading(self._tasks, self._count), self._holdings
        stopping = self._stopping[live]
        uses, counts = uses_of(old[1], live), np.diff(old[1].first_task)[live]
        tasks = spans(old[1].first_task, live)
        grants = spans(old[1].first_grant, tasks)
        # Of what is reserved only what is written to takes memory: more than is needed until
        # half of it is over again.
        self._begin(3 * len(live) + 16, 3 * len(tasks) + 16, 3 * len(grants) + 16)
        for source, target in zip(old[0], self._runs, strict=True):
            target[: len(live)] = source[live]
        for name, chosen in TASK_COLUMNS.items():
            index = tasks if chosen else grants
            getattr(self._tasks, name)[: len(index)] = getattr(old[1], name)[index]
        np.cumsum(counts, out=self._tasks.first_task[1 : len(live) + 1])
        self._tasks.first_grant[: len(tasks) + 1] = uses.first_grant
        self._holdings = [old[2][slot] for slot in live.tolist()]
        self._live[: len(live)], self._stopping[: len(live)] = True, stopping
        self._slot = {h.attempt: slot for slot, h in enumerate(self._holdings)}
        self._count = len(live)


_NUMBERS: Final = (
    "priority", "preemptions", "submitted_at", "started_at", "ends_at", "checkpoint_s",
    "restart_s", "grace_s", "deadline_at", "immune_until", "guaranteed", "preemptible",
)  # fmt: skip


def _numbers(run: RunFacts) -> tuple[float, ...]:
    terms = run.terms
    limit = terms.time_limit_s
    return (
        run.priority, run.preemptions, run.submitted_at, run.started_at,
        run.started_at + limit if limit else NEVER, terms.checkpoint_interval_s,
        terms.restart_cost_s, terms.grace_s, run.deadline_at, run.immune_until, run.guaranteed,
        terms.preemptible,
    )  # fmt: skip
