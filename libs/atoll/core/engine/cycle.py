"""One cycle: from a frozen snapshot to a plan.

Pure: the same snapshot, policies, time and generator give the same plan, byte
for byte. Jobs are tried in the order of the policy. One that does not fit
blocks its own class and nobody else.
"""

from collections.abc import Container, Hashable, Sequence
from typing import Final

import numpy as np
from numpy.random import Generator

from atoll.core.engine.board_kernels import Board, settle_all
from atoll.core.engine.clearing import Clearing
from atoll.core.engine.cycle_limits import CycleLimits as CycleLimits
from atoll.core.engine.gangs import Outcome, gang_placer
from atoll.core.engine.limits import units_left
from atoll.core.engine.line import in_order, line_up, point_to
from atoll.core.engine.masks import Masks
from atoll.core.engine.memo import Memo
from atoll.core.engine.nominees import start_nominees
from atoll.core.engine.order_kernels import advance, leave
from atoll.core.engine.placements import Assembler
from atoll.core.engine.preempted import Blocked, Preempted
from atoll.core.engine.preemption import Preemption
from atoll.core.engine.rented.passes import Rented, RentedPass
from atoll.core.engine.run_kernels import (
    AT_LIMIT,
    FULL,
    NO_PLACE,
    WAITING,
    run,
    sum_up,
    take_quota,
)
from atoll.core.engine.scoring import scoring_for
from atoll.core.engine.timeline.keeper import Keeper
from atoll.core.engine.timeline.reservations import Reservations
from atoll.core.engine.waits import Waits
from atoll.core.engine.windows.claims import with_claims
from atoll.core.engine.windows.passes import Passes
from atoll.core.engine.windows.stops import ahead, firm, stops
from atoll.core.model.ids import JobId
from atoll.core.model.plan import GangPlacement, Plan, Promise, Waiting
from atoll.core.policies.interfaces import Policies
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement

_ROOM_TASKS: Final = 1024
DEFAULTS: Final = CycleLimits()


def plan(
    snapshot: Snapshot,
    policies: Policies,
    *,
    now: float,
    rng: Generator,
    limits: CycleLimits = DEFAULTS,
    memo: Memo | None = None,
) -> Plan:
    """What to place now, and why the classes that were tried and did not fit wait.

    `now`: wall time in unix seconds; `rng`: for policies that break ties by chance.
    `memo`: of earlier cycles; it saves time and changes nothing.
    """
    snapshot = with_claims(snapshot, limits.claims, now)
    cycle = _Cycle(snapshot, policies, now=now, rng=rng)
    nominees = cycle.start_nominees()
    let_in = cycle.let_in(limits.max_placements)
    cycle.keeper.begin()
    cycle.run(limits.max_placements - let_in, memo or Memo())
    cycle.slip_in()
    rented = cycle.rent(nominees, limits.max_placements)
    placed = Assembler(cycle.snapshot, cycle.statement).placements()
    stopped = cycle.preempt(limits)
    return Plan(
        placements=(*nominees, *rented.started, *placed),
        evictions=(*rented.evictions, *stopped.evictions),
        waiting=cycle.waiting(limits.max_explained, again=stopped.again | rented.again),
        nominations=(*rented.nominations, *stopped.nominations),
        released=(*rented.released, *stopped.released),
        promises=cycle.promises(stopped, limits.reservations),
        cleared=tuple(cycle.clearing.jobs),
    )


class _Cycle:
    """The state of one cycle."""

    def __init__(
        self, snapshot: Snapshot, policies: Policies, *, now: float, rng: Generator
    ) -> None:
        self.policies = policies
        self.now = now
        self.holds = snapshot.holds
        self.masks = Masks(snapshot, policies, now)
        self.lineup = line_up(snapshot, policies, self.masks, now=now, rng=rng)
        self.snapshot = snapshot = self.lineup.snapshot
        self.statement = Statement(snapshot.nodes, snapshot.hardware, snapshot.shapes)
        self.scoring = scoring_for(snapshot, snapshot.shapes, policies.score, rng=rng)
        self.gangs = gang_placer(
            snapshot, self.statement, self.scoring, gathers=policies.score.gathers
        )
        reservations = Reservations(
            self.masks,
            self.statement,
            self.scoring,
            used=self.lineup.quota.used,
            gathers=policies.score.gathers,
        )
        self.keeper = Keeper(self.lineup, self.masks, self.statement, self.scoring, reservations)
        self.passes = Passes(
            self.lineup, self.masks, self.statement, self.scoring, policies.score.gathers
        )
        self.rented = RentedPass(
            self.lineup, self.masks, self.statement, self.scoring, policies.score.gathers
        )
        self.clearing = Clearing(snapshot, self.statement.nodes, self.scoring, self.lineup.patience)
        self._hopeless: set[Hashable] = set()

    def run(self, budget: int, memo: Memo) -> None:
        """Go through the queue until nothing fits or `budget` jobs are placed."""
        nodes = self.statement.nodes
        ready = memo.ready(
            self.snapshot,
            nodes,
            self.scoring,
            columns=self.lineup.columns,
            lanes=self.lineup.lanes,
            gathers=self.gangs.gathers,
        )
        point_to(self.lineup, ready)
        self._go_through(budget, ready.board)
        rows = np.append(self.statement.rows_since(0), self.clearing.rows)
        memo.keep(nodes, ready, rows)

    def _go_through(self, budget: int, board: Board) -> None:
        lineup, statement = self.lineup, self.statement
        tasks = max(_ROOM_TASKS, int(lineup.gangs.size.max(initial=0)))
        while budget > 0:
            stopped, placed = run(
                statement.nodes,
                self.scoring,
                board,
                lineup.line,
                lineup.forest,
                lineup.gangs,
                lineup.quota,
                statement.journal,
                budget,
            )
            budget -= placed
            if stopped >= 0:
                budget -= self._gang(stopped, board)
            elif stopped == FULL:
                statement.reserve(tasks, int(lineup.gangs.shares[0]))
            else:
                return

    def let_in(self, most: int) -> int:
        """Place up to `most` jobs in bookings that are open to them; how many."""
        return self.passes.let_in(self._charge, most)

    def slip_in(self) -> None:
        """Start what ends before what is kept for others is needed, and beside bookings."""
        self.keeper.slip_in(self._blocked(), self._charge)
        self.passes.slip_in(self._blocked(), self._charge)

    def rent(self, nominees: Sequence[GangPlacement], most: int) -> Rented:
        """Place jobs on rented machines that have no place elsewhere, or hold these for them."""
        left = most - self.statement.checkpoint() - len(nominees)
        taken = [placement.job for placement in nominees]
        return self.rented.run(self._blocked, self._charge, taken=taken, most=max(0, left))

    def promises(self, stopped: Preempted, most: int) -> tuple[Promise, ...]:
        """Reservations of the first blocked jobs, for which nothing else is held."""
        held = self._served() | {nomination.job for nomination in stopped.nominations}
        return self.keeper.promises(self._blocked(), without=held, most=most)

    def start_nominees(self) -> tuple[GangPlacement, ...]:
        """Place the jobs whose victims are gone on what is held for them."""
        started, self.holds = start_nominees(self.masks, self.statement.nodes)
        return started

    def preempt(self, limits: CycleLimits) -> Preempted:
        """Find victims for those that found no place."""
        self.clearing.open()
        blocked = [Blocked(g, int(self.lineup.line.next[g])) for g in self._blocked()]
        booked = stops(
            self.passes,
            self.policies,
            [(each.group, each.job) for each in blocked] if limits.max_preemptors else [],
            without=self._served(),
            bind_s=limits.bind_s,
        )
        preemption = Preemption(
            booked.snapshot,
            self.policies,
            ahead(self.masks, self.snapshot, limits.bind_s),
            statement=self.statement,
            scoring=self.scoring,
            quota=self.lineup.quota,
            holds=firm(self.masks.bookings, (*self.holds, *booked.holds)),
            clearing=self.clearing,
            between=self.lineup.between,
        )
        job = self.snapshot.queue.job
        others = (each for each in blocked if each.group not in booked.groups)
        served = self.rented.done.served
        alone = [
            each
            for each in others
            if (number := JobId(int(job[each.job]))) not in limits.spared and number not in served
        ]
        found = preemption.run(alone, most=limits.max_preemptors, bind_s=limits.bind_s)
        return found.beside(booked.evictions, booked.holds, booked.groups)

    def waiting(self, explained: int, *, again: Container[int] = ()) -> tuple[Waiting, ...]:
        """The classes that were tried and did not fit, in the order of their jobs."""
        passed = self.rented.done.passed
        waits = Waits(self.lineup, self.masks, self.statement, self.scoring, passed)
        return waits.of(self._blocked(), explained, again=again)

    def _served(self) -> set[JobId]:
        return self.rented.done.served | {hold.job.id for hold in self.holds}

    def _blocked(self) -> list[int]:
        return in_order(self.lineup.line, self.lineup.line.state != WAITING)

    def _gang(self, group: int, board: Board) -> int:
        line, forest = self.lineup.line, self.lineup.forest
        view = self.snapshot.queue.classes[group]
        if line.state[group] == NO_PLACE:
            self._clear(group, int(line.next[group]), board)
            return 0
        mark = self.statement.checkpoint()
        outcome = self._place(view, int(line.next[group]))
        if outcome is Outcome.PLACED and not self._charge(group, mark):
            self.statement.rollback(mark)
            outcome = Outcome.AT_LIMIT
        if outcome is Outcome.PLACED:
            rows = self.statement.rows_since(mark)
            settle_all(self.statement.nodes, self.scoring, board, np.unique(rows))
            line.next[group] += 1
            advance(line, forest, group)
            self.masks.note(view.request, rows)
            return 1
        line.state[group] = AT_LIMIT if outcome is Outcome.AT_LIMIT else NO_PLACE
        leave(line, forest, group)
        if outcome is Outcome.NO_PLACE:
            self._clear(group, int(line.next[group]), board)
        return 0

    def _clear(self, group: int, job: int, board: Board) -> None:
        if self.clearing.jobs or self.rented.waits(JobId(int(self.snapshot.queue.job[job]))):
            return
        rows = self.clearing.clear(group, job, self.masks)
        if len(rows):
            settle_all(self.statement.nodes, self.scoring, board, rows)
            # Nothing that is known of rooms is true any more.
            self.gangs = gang_placer(
                self.snapshot, self.statement, self.scoring, gathers=self.policies.score.gathers
            )

    def _charge(self, group: int, mark: int) -> bool:
        amount = self.lineup.forest.amount
        sum_up(self.statement.nodes, self.scoring, self.statement.journal, mark, amount)
        return take_quota(self.lineup.line, self.lineup.quota, group, amount)

    def _place(self, view: ClassView, job: int) -> Outcome:
        # Capacity only shrinks within a cycle: what did not fit once will not fit later.
        place = self.masks.place(view)
        if place in self._hopeless:
            return Outcome.NO_PLACE
        left = units_left(view, self.snapshot, used=self.lineup.quota.used)
        outcome = Outcome.NO_PLACE
        for where in self.masks.in_turn(view):
            outcome = self.gangs.place(view, where, job=job, units_left=left)
            if outcome is Outcome.PLACED:
                return outcome
        if outcome is Outcome.NO_PLACE:
            self._hopeless.add(place)
        return outcome
