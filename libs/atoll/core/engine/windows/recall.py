"""Takes lent capacity back for owners' jobs that find no place in their windows.

As little is taken as the job needs, and it is held for the job by name until it starts. Before a
window begins this happens so early that those who have to go are gone by then.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.ground import Ask
from atoll.core.engine.limits import units_left
from atoll.core.engine.masks import Masks
from atoll.core.engine.preemption import hold_slices
from atoll.core.engine.score_kernels import Scoring
from atoll.core.engine.victims import Choice, Offer, choose
from atoll.core.engine.windows.admission import Admission, Entrance, taken
from atoll.core.engine.windows.bookings import Claimant, claimant
from atoll.core.model.booking import STOP_MARGIN_S
from atoll.core.model.ids import AttemptId, JobId
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.plan import Eviction, Nomination, PendingJob
from atoll.core.policies.interfaces import Policies
from atoll.core.state.columns import Nodes, scratch_copy
from atoll.core.state.holds import Hold
from atoll.core.state.ledger import flatten
from atoll.core.state.ledger_kernels import Uses, give_gangs
from atoll.core.state.run_columns import uses_of
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.statement import Statement

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(slots=True)
class Recalled:
    """Who is stopped for whom."""

    evictions: list[Eviction] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    groups: set[int] = field(default_factory=set)
    """Classes of the jobs that something is held for."""


@dataclass(slots=True)
class Recall:
    """One cycle's recalls; the snapshot's running work is told who is stopped."""

    snapshot: Snapshot
    policies: Policies
    masks: Masks
    statement: Statement
    scoring: Scoring
    used: Ints
    bind_s: float
    admission: Admission
    result: Recalled = field(default_factory=Recalled)

    def run(self, waiting: Sequence[tuple[int, int]], without: Container[JobId]) -> Recalled:
        """Look for lent places of blocked classes' next jobs: (class, index in the queue).

        `without`: jobs for which something is held already.
        """
        queue = self.snapshot.queue
        for group, job in waiting:
            if JobId(int(queue.job[job])) not in without:
                self._recall(group, job)
        return self.result

    def _recall(self, group: int, job: int) -> None:
        view = self.snapshot.queue.classes[group]
        who = claimant(view.queue, view.request)
        at = self._when(who)
        if at is None:
            return
        nodes = self._nodes()
        until = max(at, self.masks.now + self._longest()) + self.bind_s
        entrance = self.admission.owners(who, nodes, at=at, held_until=until)
        if entrance is None:
            return
        slots = self._lent(entrance)
        if not len(slots):
            return
        ask = Ask(
            view,
            job,
            self.masks.unbooked_of(view, entrance.rows),
            self.policies.score.gathers,
        )
        with taken(nodes, entrance.kept):
            found = choose(
                replace(self.snapshot, nodes=nodes),
                self.scoring,
                ask=ask,
                offer=self._offer(group, slots),
            )
        if found is None:
            return
        tasks = found.placement.tasks
        if not who.reservation or self.admission.holds(who, tasks, at=at):
            self.result.groups.add(group)
            self._settle(found, slots[found.victims], pending=self._pending(group, job), at=at)

    def _when(self, who: Claimant) -> float | None:
        """Now, or the beginning of a window that begins before lent runs could be gone."""
        bookings = self.masks.bookings
        if bookings.inside(who, bookings.now).any():
            return bookings.now
        starts = bookings.view.start
        soon = (starts > bookings.now) & (starts <= bookings.now + self._longest() + STOP_MARGIN_S)
        for at in np.unique(starts[soon & bookings.owned(who.queue, who.marks)]).tolist():
            if bookings.inside(who, at).any():
                return float(at)
        return None

    def _longest(self) -> float:
        """Grace of those who may be stopped."""
        running = self.snapshot.running
        return float(running.runs.grace_s[running.live & running.runs.preemptible].max(initial=0.0))

    def _nodes(self) -> Nodes:
        """What is free once all who were told to stop have done so."""
        nodes = scratch_copy(self.statement.nodes)
        gone = np.flatnonzero(self.snapshot.running.live & self.snapshot.running.stopping)
        give_gangs(nodes, self._uses(gone), np.arange(len(gone)))
        for hold in (*self.snapshot.holds, *self.result.holds):
            hold_slices(nodes, hold.uses)
        return nodes

    def _lent(self, entrance: Entrance) -> Ints:
        """Slots of others' runs that may be stopped, on rows that a job may go on."""
        running, bookings = self.snapshot.running, self.masks.bookings
        slots = np.flatnonzero(running.live & ~running.stopping & running.runs.preemptible)
        uses = self._uses(slots)
        of = np.repeat(np.arange(len(slots)), np.diff(uses.first_task))
        here = np.unique(of[entrance.rows[uses.row]])
        meets = bookings.view.lends & (bookings.view.end > bookings.now)
        lent = [int(slot) for slot in slots[here] if self._is_guest(int(slot), meets)]
        return np.array(lent, np.int64)

    def _is_guest(self, slot: int, windows: Bools) -> bool:
        """Whether a run is on a lending window's rows that is not its own."""
        bookings, running = self.masks.bookings, self.snapshot.running
        holding = running.holdings[slot]
        marks = holding.run.marks if holding.run is not None else ()
        rows = [self.snapshot.row_of[task.node] for task in holding.tasks]
        layout = bookings.layout
        strange = windows & ~bookings.owned(holding.queue, marks)
        own = windows & bookings.owned(holding.queue, marks)
        here = [layout.shares.window[layout.first[r] : layout.first[r + 1]] for r in rows]
        return any(strange[w].any() and not own[w].any() for w in here)

    def _offer(self, group: int, slots: Ints) -> Offer:
        view, running = self.snapshot.queue.classes[group], self.snapshot.running
        uses = self._uses(slots)
        of = np.repeat(np.arange(len(slots)), np.diff(uses.first_task))
        held = np.bincount(of, np.diff(uses.first_grant) + 1.0, len(slots))
        return Offer(
            uses=uses,
            cost=self.policies.victims.costs(running, slots, now=self.masks.now),
            freed=held.astype(np.float64),
            asked=0,
            units_left=lambda _: units_left(view, self.snapshot, used=self.used),
            sound=lambda _: True,
        )

    def _settle(self, found: Choice, victims: Ints, *, pending: PendingJob, at: float) -> None:
        placement, running = found.placement, self.snapshot.running
        self.snapshot.running.stopping[victims] = True
        uses = flatten([placement.tasks], self.snapshot)
        waits = self._waits(uses)
        grace = float(running.runs.grace_s[waits].max(initial=0.0))
        nomination = Nomination(
            placement.job,
            placement.cluster,
            placement.queue,
            placement.tasks,
            until=max(at, self.masks.now + grace) + self.bind_s,
            victims=tuple(AttemptId(a) for a in running.runs.attempt[waits].tolist()),
        )
        for slot in victims.tolist():
            held = running.holdings[slot]
            self.result.evictions.append(
                Eviction(held.attempt, held.cluster, StopCause.BOOKING, placement.job)
            )
        hold = Hold(nomination, pending, uses, uses.bits)
        hold.take(self.statement.nodes)
        self.result.holds.append(hold)
        self.admission.forget()

    def _waits(self, uses: Uses) -> Ints:
        """Slots of those that stop and have tasks on the rows of the job."""
        slots = np.flatnonzero(self.snapshot.running.live & self.snapshot.running.stopping)
        theirs = self._uses(slots)
        of = np.repeat(np.arange(len(slots)), np.diff(theirs.first_task))
        return slots[np.unique(of[np.isin(theirs.row, uses.row)])]

    def _pending(self, group: int, job: int) -> PendingJob:
        queue = self.snapshot.queue
        view = queue.classes[group]
        return PendingJob(
            JobId(int(queue.job[job])),
            int(queue.revision[job]),
            view.queue,
            view.priority,
            submitted_at=float(queue.submitted_at[job]),
            request=view.request,
        )

    def _uses(self, slots: Ints) -> Uses:
        return uses_of(self.snapshot.running.tasks, slots, self.snapshot.nodes)
