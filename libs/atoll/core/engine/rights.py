"""Who may be stopped for whom.

Work inside quota: below a vertex of the queue tree, runs in the order of their
start while their sum is within what it deserves, those that are inside further
down before others; the run that crosses the line and all after it are borrowed.

Reclaim: the claimant's queue, or one above it, is inside quota with the new job
counted; its victims are borrowed at the sibling where the two part. Priority:
lower work of the same queue, and borrowed lower work of others.

Why this ends (without it two queues evicted each other for ever): take the work
inside quota by vertex, the deepest level first, and on a level by priority. A
reclaim raises it at the level where the two part, and takes nothing from deeper
ones. Priority may take work that is inside only where the new job is inside then,
so it raises the same sum; or it leaves that sum and raises the running work by
priority. Capacity bounds both.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import QueueName
from atoll.core.state.shares import DEVICES
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
NOWHERE = -1
MOST_EXCESS: Final = 4.0
"""More is not told apart."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Runs that may be stopped for one job."""

    slots: Ints
    strict: Bools
    """Inside quota of a queue above both: only if the job is inside it then, too."""


class Rights:
    """Quota lines over the running work of a snapshot.

    `held`: (V, K) what queues hold by device kind, with what the cycle has placed.
    """

    def __init__(self, snapshot: Snapshot, held: Ints, *, now: float) -> None:
        self.snapshot = snapshot
        self.held = held.copy()
        self.now = now
        running = snapshot.running
        self.gone = ~running.live
        """(slots) over, or as good as that."""
        self.stop(np.flatnonzero(running.live & running.stopping))

    def may_claim(self, view: ClassView, depth: int) -> Ints:
        """Device kinds in which a class's next job is inside quota at a depth; none: it is not."""
        vertex = self.chain(view.vertex)[depth]
        left = self.deserved[vertex] - self.held[vertex]
        asked = view.need.devices
        if not asked:
            return np.zeros(0, np.int64)
        if any(kind < 0 for kind, _ in asked):
            return np.flatnonzero(left >= sum(units for _, units in asked))
        inside = all(kind < len(left) and units <= left[kind] for kind, units in asked)
        return np.array([kind for kind, _ in asked if inside], np.int64)

    def candidates(self, view: ClassView) -> Candidates:
        """Whom the next job of a class may stop."""
        runs = self.snapshot.running.runs
        chain = self.chain(view.vertex)
        parting = self._parting(chain)
        same = self._leaf == view.vertex
        borrowed = ~self._inside_at(np.minimum(parting, self._depth))
        allowed = self._reclaims(view, parting) & borrowed & ~same
        lower = (runs.priority < view.priority) & (same | borrowed) & self._preempts(view)
        strict = lower & ~allowed & self._inside_above(parting, same)
        may = (allowed | lower) & self._free_to_stop()
        slots = np.flatnonzero(may)
        return Candidates(slots, strict[slots])

    def stays_inside(self, view: ClassView, victims: Ints, amounts: Ints) -> bool:
        """Whether a job of `amounts` (K) may take the place of strict victims among `victims`."""
        chain = self.chain(view.vertex)
        for depth in range(1, len(chain)):
            below = victims[self._above[depth, victims] == chain[depth]]
            if not self._inside[depth, below].any():
                continue
            held = self.held[chain[depth]] - self.units[below].sum(axis=0) + amounts
            if (held > self.deserved[chain[depth]])[amounts > 0].any():
                return False
        return True

    def below(self, queue: QueueName, slots: Ints) -> Bools:
        """Which of some runs are of a queue or of one below it."""
        vertex = self.snapshot.shares.vertex(queue)
        below: Bools = (self._above[:, slots] == vertex).any(axis=0)
        return below

    def excess(self, view: ClassView, slots: Ints) -> Floats:
        """(S) how many times what it deserves each run's queue holds, 1 to MOST_EXCESS.

        Of the kind of which it is most; the queue is that where it and the class's part.
        """
        vertex = self.siblings(view)[slots]
        times = self.held[vertex] / np.maximum(self.deserved[vertex], 1)
        most = np.where(self.units[slots] > 0, times, 1.0).max(axis=1, initial=1.0)
        excess: Floats = np.clip(most, 1.0, MOST_EXCESS)
        return excess

    def siblings(self, view: ClassView) -> Ints:
        """(slots) each run's queue, or the one above it, that parts from the class's."""
        level = np.minimum(self._parting(self.chain(view.vertex)), self._depth)
        siblings: Ints = self._above[level, np.arange(len(level))]
        return siblings

    def may_give_way(self, view: ClassView) -> Bools:
        """(slots) runs borrowed below where their queue parts from the class's, not above it."""
        chain = self.chain(view.vertex)
        parting, runs = self._parting(chain), self.snapshot.running.runs
        part = (parting < len(chain)) & (parting <= self._depth)
        below = np.arange(len(self._inside))[:, None] >= parting
        borrowed = ~np.logical_or.reduce(self._inside & below, axis=0)
        lower = (runs.priority <= view.priority) & self._preempts(view)
        may: Bools = part & borrowed & lower & self._free_to_stop()
        return may

    def stop(self, slots: Ints) -> None:
        """Runs are stopped: what they hold does not count any more."""
        self.gone[slots] = True
        # Others may be inside quota now, in place of these.
        self.__dict__.pop("_inside", None)
        for slot in slots.tolist():
            self.held[list(self.chain(int(self._leaf[slot])))] -= self.units[slot]

    def start(self, vertex: int, amounts: Ints) -> None:
        """A job of a queue takes `amounts` (K)."""
        self.held[list(self.chain(vertex))] += amounts

    def chain(self, vertex: int) -> tuple[int, ...]:
        """From the root down to a vertex."""
        parent = self.snapshot.shares.parent
        chain = [vertex]
        while chain[-1]:
            chain.append(int(parent[chain[-1]]))
        return tuple(reversed(chain))

    @cached_property
    def units(self) -> Ints:
        """(slots, K) what runs hold by device kind, in 1/56 block."""
        snapshot, tasks = self.snapshot, self.snapshot.running.tasks
        count = len(snapshot.running.live)
        units = np.zeros((count, self.held.shape[1]), np.int64)
        counts = np.diff(tasks.first_grant)
        of = np.repeat(np.arange(count), np.diff(tasks.first_task))
        rows = np.searchsorted(snapshot.nodes.id, np.repeat(tasks.node, counts))
        models, _ = snapshot.hardware
        # As in the books: a device that is gone counts for kind 0.
        kind = np.maximum(models.kind[snapshot.nodes.model[rows, tasks.device]], 0)
        np.add.at(units, (np.repeat(of, counts), kind), tasks.units)
        return units

    @cached_property
    def _leaf(self) -> Ints:
        shares, running = self.snapshot.shares, self.snapshot.running
        size = len(shares.parent)
        vertex = {name: number for number, name in enumerate(shares.names[:size])}
        numbers = [vertex.get(name, 0) for name in running.queues.values]
        return np.array([*numbers, 0], np.int64)[running.runs.queue]

    @cached_property
    def _chains(self) -> Ints:
        """(depth, V) ancestor of each vertex at a depth, NOWHERE below itself."""
        size = len(self.snapshot.shares.parent)
        chains = [self.chain(vertex) for vertex in range(size)]
        table = np.full((max(map(len, chains)), size), NOWHERE, np.int64)
        for vertex, chain in enumerate(chains):
            table[: len(chain), vertex] = chain
        return table

    @cached_property
    def _above(self) -> Ints:
        """(depth, slots)."""
        return self._chains[:, self._leaf]

    @cached_property
    def _depth(self) -> Ints:
        """(slots) depth of each run's queue."""
        depth: Ints = (self._above != NOWHERE).sum(axis=0) - 1
        return depth

    @cached_property
    def _inside(self) -> Bools:
        """(depth, slots) inside quota of the vertex above it at that depth."""
        inside = np.zeros(self._above.shape, np.bool_)
        live = np.flatnonzero(~self.gone)
        below = np.zeros(len(self.gone), np.bool_)
        for depth in range(len(inside) - 1, 0, -1):
            here = live[self._above[depth, live] != NOWHERE]
            inside[depth, here] = below[here] = self._line(here, depth, below[here])
        return inside

    def _line(self, slots: Ints, depth: int, below: Bools) -> Bools:
        runs, vertex = self.snapshot.running.runs, self._above[depth, slots]
        order = np.lexsort((runs.attempt[slots], runs.started_at[slots], ~below, vertex))
        ordered, units = vertex[order], self.units[slots[order]]
        total = np.cumsum(units, axis=0)
        begins = np.flatnonzero(np.diff(ordered, prepend=NOWHERE))
        before = np.zeros_like(total[begins])
        before[1:] = total[begins[1:] - 1]
        sizes = np.diff(np.append(begins, len(ordered)))
        total -= np.repeat(before, sizes, axis=0)
        within = (total <= self.deserved[ordered]) | (units == 0)
        # Work without devices is of no kind's quota; it is inside wherever something is deserved.
        within &= (self.deserved[ordered] > 0).any(axis=1)[:, None]
        inside = np.zeros(len(slots), np.bool_)
        inside[order] = within.all(axis=1)
        return inside

    @cached_property
    def deserved(self) -> Ints:
        """(V, K), in 1/56 block."""
        deserved, wide = self.snapshot.shares.deserved, self.held.shape[1]
        return np.pad(deserved, ((0, 0), (0, wide - deserved.shape[1])))

    def _parting(self, chain: tuple[int, ...]) -> Ints:
        """(slots) the first depth at which a run's queue is not below the same vertex."""
        above = self._above
        own = np.full(len(above), NOWHERE, np.int64)
        own[: min(len(chain), len(own))] = chain[: len(own)]
        differs = above != own[:, None]
        parting: Ints = np.where(differs.any(axis=0), differs.argmax(axis=0), len(above))
        return parting

    def _inside_at(self, depth: Ints) -> Bools:
        at: Bools = self._inside[np.maximum(depth, 0), np.arange(len(depth))]
        return at

    def _inside_above(self, parting: Ints, same: Bools) -> Bools:
        depths = np.arange(len(self._inside))[:, None]
        common = depths < np.where(same, len(self._inside), parting)
        above: Bools = np.logical_or.reduce(self._inside & common, axis=0)
        return above

    def _reclaims(self, view: ClassView, parting: Ints) -> Bools:
        depth = len(self.chain(view.vertex)) - 1
        found = np.zeros(len(parting), np.bool_)
        for level in range(1, depth + 1):
            kinds = self.may_claim(view, level)
            here = np.minimum(parting, depth) == level
            if len(kinds):
                found |= here & (self.units[:, kinds] > 0).any(axis=1)
        return found

    def _preempts(self, view: ClassView) -> bool:
        return view.request.terms.preempts and view.queue not in self.snapshot.calm

    def _free_to_stop(self) -> Bools:
        runs = self.snapshot.running.runs
        free: Bools = ~self.gone & runs.preemptible & ~runs.guaranteed
        return free & (runs.immune_until <= self.now)


def placed_by_queue(snapshot: Snapshot, statement: Statement) -> Ints:
    """(V, K) what a statement has given to queues and those above them, in 1/56 block."""
    shares, size = snapshot.shares, statement.checkpoint()
    placed = np.zeros((len(shares.parent), shares.held.shape[1] - DEVICES), np.int64)
    journal = statement.journal
    tasks = np.flatnonzero(journal.units[:size])
    if snapshot.rentals:
        # Shares are of what there is without renting.
        tasks = tasks[~snapshot.rentals.rows[journal.uses.row[tasks]]]
    group = np.searchsorted(snapshot.queue.first, journal.job[tasks], side="right") - 1
    vertex = np.array([view.vertex for view in snapshot.queue.classes], np.int64)[group]
    device = journal.uses.device[journal.uses.first_grant[tasks]]
    model = snapshot.nodes.model[journal.uses.row[tasks], device]
    kind = np.maximum(snapshot.hardware.models.kind[model], 0)
    np.add.at(placed, (vertex, kind), journal.units[tasks])
    for child in range(len(placed) - 1, 0, -1):
        placed[shares.parent[child]] += placed[child]
    return placed
