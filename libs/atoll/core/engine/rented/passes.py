"""Places jobs on rented machines once everybody had a turn on what there is without renting.

First those for whom a machine is held that has joined, then blocked classes in their order, on
the cheapest machine that they may use. What is still without a place then, and for which a
machine boots, has that held.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from atoll.core.engine.gangs import GangPlacer, Outcome, gang_placer
from atoll.core.engine.limits import units_left
from atoll.core.engine.line import Lineup
from atoll.core.engine.masks import ByShape, Masks
from atoll.core.engine.nominees import placement_on
from atoll.core.engine.rented.cost import too_dear
from atoll.core.engine.rented.holding import held_on
from atoll.core.engine.run_kernels import AT_LIMIT, NO_PLACE, WAITING
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.ids import JobId
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.plan import Eviction, GangPlacement, Nomination
from atoll.core.state.holds import Hold, charge_of
from atoll.core.state.ledger_kernels import take_gangs
from atoll.core.state.rental_view import RentalView
from atoll.core.state.rentals import stops_at
from atoll.core.state.renting import overdue
from atoll.core.state.shares import DEVICES
from atoll.core.state.snapshot import ClassView
from atoll.core.state.statement import Statement

MOST_TRIED: Final = 256
"""Times that a class is tried on a machine in one cycle."""

Charge = Callable[[int, int], bool]
"""Takes a class's placement since a mark from its limits, or refuses."""


@dataclass(slots=True)
class Rented:
    """What came of rented machines in one cycle."""

    started: list[GangPlacement] = field(default_factory=list)
    """On what was held for them; other placements are in the statement."""
    nominations: list[Nomination] = field(default_factory=list)
    released: list[JobId] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    again: set[int] = field(default_factory=set)
    """Classes for which nobody had the time."""
    served: set[JobId] = field(default_factory=set)
    """Jobs that have started, or for which a machine is held: nobody else makes room for them."""
    passed: Counter[int] = field(default_factory=Counter)
    """By class, jobs that started out of their turn, for a machine was held for them."""


@dataclass
class RentedPass:
    """One cycle's."""

    lineup: Lineup
    masks: Masks
    statement: Statement
    scoring: Scoring
    gathers: bool
    done: Rented = field(default_factory=Rented)
    _tried: int = 0
    _hopeless: set[Hashable] = field(default_factory=set)
    _started: set[JobId] = field(default_factory=set)

    def waits(self, job: JobId) -> bool:
        """Whether a machine that boots is held for a job."""
        return any(hold.job.id == job for hold in self.rentals.holds)

    def run(
        self, blocked: Callable[[], list[int]], charge: Charge, *, taken: Sequence[JobId], most: int
    ) -> Rented:
        """Place up to `most` jobs. `taken`: those that were placed outside of the statement."""
        if not self.rentals:
            return self.done
        if not self.rentals.quiet:
            self._evict()
            self._start({*taken, *self._placed()})
        for group in blocked():
            most -= self._fill(group, charge, most=most)
        if not self.rentals.quiet:
            self._hold({*taken, *self._placed()})
        return self.done

    @property
    def rentals(self) -> RentalView:
        """Of the cycle."""
        return self.masks.snapshot.rentals

    def _evict(self) -> None:
        rentals, running = self.rentals, self.masks.snapshot.running
        ends = enumerate(map(stops_at, rentals.values))
        over = [rentals.cluster[n] for n, at in ends if at is not None and at <= self.masks.now]
        slots = overdue(running, over).tolist()
        held = sorted((running.holdings[slot] for slot in slots), key=lambda each: each.attempt)
        self.done.evictions += [Eviction(h.attempt, h.cluster, StopCause.DRAIN) for h in held]

    def _placed(self) -> list[JobId]:
        journal, size = self.statement.journal, self.statement.checkpoint()
        jobs = self.lineup.snapshot.queue.job[np.unique(journal.job[:size])]
        return [JobId(job) for job in jobs.tolist()]

    def _start(self, placed: set[JobId]) -> None:
        order = sorted(self.rentals.holds, key=lambda hold: (-hold.job.priority, hold.job.id))
        for hold in order:
            number = self.rentals.number(hold)
            if hold.job.id in placed:
                continue
            if not self.rentals.takes_holds(number):
                self.done.served.add(hold.job.id)
            elif self._may_start(hold, number) and self._takes(hold):
                self.masks.note(hold.job.request, np.unique(hold.uses.row))
                self.done.started.append(placement_on(hold))
                self._started.add(hold.job.id)
                self.done.served.add(hold.job.id)
            else:
                # The machine is there: whoever may use it does so from the next cycle on.
                self.done.released.append(hold.job.id)
                self.done.served.add(hold.job.id)
        self._pass_over()

    def _may_start(self, hold: Hold, number: int) -> bool:
        job, rentals = hold.job, self.rentals
        cluster = self.masks.snapshot.clusters[rentals.cluster[number]]
        if cluster.closed is not None or rentals.not_allowed(number, job.queue, job.request):
            return False
        of = np.array([task.group for task in hold.nomination.tasks], np.int64)
        return all(
            any(
                self.masks.rented(job.request, shape, job.queue, rental=number)[
                    hold.uses.row[of == at]
                ].all()
                for shape in group.shapes
            )
            for at, group in enumerate(job.request.groups)
        )

    def _takes(self, hold: Hold) -> bool:
        quota, nodes, snapshot = self.lineup.quota, self.statement.nodes, self.masks.snapshot
        units = charge_of(
            hold,
            snapshot.limits,
            nodes=snapshot.nodes,
            models=snapshot.hardware.models,
            kinds=snapshot.shares.held.shape[1] - DEVICES,
        )
        if (quota.used + units > quota.limit)[units > 0].any():
            return False
        hold.give_back(nodes)
        if take_gangs(nodes, snapshot.hardware.models.mode, hold.uses, True).any():
            hold.take(nodes)
            return False
        np.add(quota.used, units, out=quota.used)
        return True

    def _pass_over(self) -> None:
        """Those that have started wait no more, wherever in the line they are."""
        if not self.done.started:
            return
        queue, line = self.lineup.snapshot.queue, self.lineup.line
        started = np.array(sorted(self._started), np.int64)
        at = np.flatnonzero(np.isin(queue.job, started))
        groups = np.searchsorted(queue.first, at, side="right") - 1
        self.done.passed.update(groups[at >= line.next[groups]].tolist())
        for group in np.unique(groups).tolist():
            self._go_on(group)

    def _go_on(self, group: int) -> bool:
        """Go past jobs that have started; whether there is one left."""
        line, queue = self.lineup.line, self.lineup.snapshot.queue
        while line.next[group] < line.end[group]:
            if JobId(int(queue.job[line.next[group]])) not in self._started:
                return True
            line.next[group] += 1
            self.done.passed[group] -= 1
        line.state[group] = WAITING
        return False

    def _hold(self, placed: set[JobId]) -> None:
        made = held_on(
            self.masks, self.scoring, self.statement.nodes, without=placed | self.done.served
        )
        self.done.nominations += made
        self.done.served.update(nomination.job for nomination in self.done.nominations)

    def _fill(self, group: int, charge: Charge, *, most: int) -> int:
        line, view = self.lineup.line, self.lineup.snapshot.queue.classes[group]
        if line.state[group] != NO_PLACE:
            return 0
        placed = 0
        for rental in self.masks.allowed_rentals(view.request, view.queue):
            while self._go_on(group) and line.state[group] == NO_PLACE:
                if self._too_dear(group, view, rental):
                    break
                if placed == most or self._tried == MOST_TRIED:
                    self.done.again.add(group)
                    return placed
                if not self._place(group, view, charge, rental=rental):
                    break
                line.next[group] += 1
                placed += 1
        return placed

    def _too_dear(self, group: int, view: ClassView, rental: int) -> bool:
        """For the next job of a class."""
        job = JobId(int(self.lineup.snapshot.queue.job[self.lineup.line.next[group]]))
        return bool(too_dear(self.rentals.values[rental], view.request, job))

    def _place(self, group: int, view: ClassView, charge: Charge, *, rental: int) -> bool:
        place = (self.masks.place(view), rental)
        if place in self._hopeless:
            return False
        self._tried += 1
        mark, used = self.statement.checkpoint(), self.lineup.quota.used
        left = units_left(view, self.lineup.snapshot, used=used)
        job = int(self.lineup.line.next[group])
        outcome = self._gangs.place(view, self._where(view, rental), job=job, units_left=left)
        if outcome is Outcome.NO_PLACE:
            # Capacity only shrinks within a cycle.
            self._hopeless.add(place)
        if outcome is Outcome.PLACED and not charge(group, mark):
            self.statement.rollback(mark)
            outcome = Outcome.AT_LIMIT
        if outcome is Outcome.AT_LIMIT:
            self.lineup.line.state[group] = AT_LIMIT
        if outcome is not Outcome.PLACED:
            return False
        self.masks.note(view.request, self.statement.rows_since(mark))
        return True

    def _where(self, view: ClassView, rental: int) -> ByShape:
        request, snapshot = view.request, self.masks.snapshot
        shapes = {shape for shapes in view.shapes for shape in shapes}
        return {
            shape: self.masks.rented(request, snapshot.task_shape(shape), view.queue, rental=rental)
            for shape in shapes
        }

    @cached_property
    def _gangs(self) -> GangPlacer:
        return gang_placer(self.lineup.snapshot, self.statement, self.scoring, gathers=self.gathers)
