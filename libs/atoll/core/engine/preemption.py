"""Makes room for blocked jobs by stopping others: all that it takes, or nobody.

Runs when a cycle has placed what fits. What comes free by a stop is held for
the job by name, exactly as it will take it, until it starts or the hold ends.
A job for which nobody may be stopped blocks nobody.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.asks import amounts, kinds_of
from atoll.core.engine.clearing import Clearing
from atoll.core.engine.ground import Ask
from atoll.core.engine.limits import units_left
from atoll.core.engine.masks import Masks
from atoll.core.engine.preempted import Blocked, Preempted
from atoll.core.engine.rebalancing import Rebalancing
from atoll.core.engine.rights import Rights, placed_by_queue
from atoll.core.engine.run_kernels import Quota
from atoll.core.engine.score_kernels import Scoring
from atoll.core.engine.victims import Choice, Offer, choose
from atoll.core.model.ids import AttemptId
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.plan import Eviction, Nomination
from atoll.core.policies.interfaces import Policies, Standing
from atoll.core.state.columns import Nodes, scratch_copy
from atoll.core.state.holds import Hold
from atoll.core.state.ledger import flatten
from atoll.core.state.ledger_kernels import Uses, give_gangs, take_gangs
from atoll.core.state.limits import ALL_KINDS
from atoll.core.state.needs import least_units
from atoll.core.state.run_columns import uses_of
from atoll.core.state.shares import DEVICES
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Preemption:
    """The state of one cycle's preemptions."""

    def __init__(
        self,
        snapshot: Snapshot,
        policies: Policies,
        masks: Masks,
        *,
        statement: Statement,
        scoring: Scoring,
        quota: Quota,
        holds: Sequence[Hold],
        clearing: Clearing,
        between: Standing | None,
    ) -> None:
        """`holds`: of jobs that have not started; `between`: how borrowers are compared."""
        self.snapshot = snapshot
        self.policies = policies
        self.masks = masks
        self.scoring = scoring
        self.statement = statement
        self.used = quota.used.copy()
        self.holds = {hold.job.id: hold for hold in holds}
        self.clearing = clearing
        self.between = between
        self.result = Preempted()
        self.bind_s = 0.0

    def run(self, blocked: Sequence[Blocked], *, most: int, bind_s: float) -> Preempted:
        """Look for victims of up to `most` jobs, in their order. `bind_s`: until a job starts.

        First for the one for which nodes are cleared: nobody else claims these.
        """
        tries, self.bind_s = 0, bind_s
        for each in sorted(blocked, key=lambda each: each.group != self.clearing.group):
            view = self.snapshot.queue.classes[each.group]
            if not self._may_stop_anybody(view):
                continue
            if tries == most:
                self.result.again.add(each.group)
                continue
            tries += 1
            self._make_room(each, view)
        return self.result

    @cached_property
    def rights(self) -> Rights:
        """Worked out only when somebody is blocked who could have rights."""
        held = self.snapshot.shares.held[:, DEVICES:]
        placed = placed_by_queue(self.snapshot, self.statement)
        return Rights(self.snapshot, held + placed, now=self.masks.now)

    @cached_property
    def lowest(self) -> float:
        """Priority of the least of those that run, or for whom something is held."""
        running = self.snapshot.running
        runs = running.runs.priority[running.live].min(initial=np.iinfo(np.int64).max)
        return min([int(runs), *(hold.job.priority for hold in self.holds.values())])

    @cached_property
    def nodes(self) -> Nodes:
        """What is free once all who were told to stop have done so, and nobody else."""
        nodes = scratch_copy(self.statement.nodes)
        running = self.snapshot.running
        stopping = np.flatnonzero(running.live & running.stopping)
        give_gangs(nodes, self._uses(stopping), np.arange(len(stopping)))
        for hold in self.holds.values():
            hold_slices(nodes, hold.uses)
        return nodes

    def _may_stop_anybody(self, view: ClassView) -> bool:
        if view.request.terms.preempts and self.lowest < view.priority:
            return True
        if self.between is not None:
            return True
        if not self.snapshot.shares.deserved.any():
            return False
        depths = range(1, len(self.rights.chain(view.vertex)))
        return any(len(self.rights.may_claim(view, depth)) for depth in depths)

    def _make_room(self, each: Blocked, view: ClassView) -> None:
        candidates = self.rights.candidates(view)
        ask = Ask(view, each.job, self.masks.of(view), self.policies.score.gathers)
        for chosen in (~candidates.strict, np.ones(len(candidates.slots), np.bool_)):
            slots = candidates.slots[chosen]
            found = self._choose(view, ask, slots)
            if found is not None:
                self._settle(each, slots[found.victims], found)
                return
            if not candidates.strict.any():
                break
        if self.between is not None:
            self._rebalance(each, ask, Rebalancing(self.rights, self.between))

    def _rebalance(self, each: Blocked, ask: Ask, rebalancing: Rebalancing) -> None:
        view, asked = ask.view, self._amounts(ask.view)
        slots = rebalancing.candidates(view, asked)
        found = self._choose(view, ask, slots)
        if found is not None and rebalancing.accepts(view, slots[found.victims], asked):
            self._settle(each, slots[found.victims], found)

    def _choose(self, view: ClassView, ask: Ask, slots: Ints) -> Choice | None:
        running, victims = self.snapshot.running, self.policies.victims
        asked, cost = self._amounts(view), victims.costs(running, slots, now=self.masks.now)
        kinds = kinds_of(view, self.snapshot, len(asked))
        wanted = self.rights.units[slots][:, kinds].sum(axis=1)
        offer = Offer(
            uses=self._uses(slots),
            cost=cost * self.rights.excess(view, slots) ** -victims.excess,
            freed=np.maximum(wanted.astype(np.float64), 1.0),
            asked=least_units(view.request),
            units_left=lambda gone: self._units_left(view, slots[gone]),
            sound=lambda gone: self.rights.stays_inside(view, slots[gone], asked),
        )
        part = replace(self.snapshot, nodes=self._inherited(view))
        return choose(part, self.scoring, ask=ask, offer=offer)

    def _inherited(self, view: ClassView) -> Nodes:
        nodes = scratch_copy(self.nodes)
        for hold in self._lower(view):
            give_gangs(nodes, hold.uses, np.zeros(1, np.int64))
        self.clearing.keep_from(view, nodes)
        return nodes

    def _settle(self, each: Blocked, victims: Ints, found: Choice) -> None:
        view = self.snapshot.queue.classes[each.group]
        uses = flatten([found.placement.tasks], self.snapshot)
        give_gangs(self.nodes, self._uses(victims), np.arange(len(victims)))
        inherited = self._release(view, uses)
        waits = self._stopping_on(uses, victims)
        if not len(waits) and not inherited:
            # It fits as it is: some later cycle places it without a hold.
            return
        self._evict(victims, found)
        self.clearing.settle(each.group)
        self.rights.start(view.vertex, self._amounts(view))
        self._charge(view, victims)
        running = self.snapshot.running
        grace = float(running.runs.grace_s[waits].max(initial=0.0))
        mine = [AttemptId(a) for a in running.runs.attempt[waits].tolist()]
        placement = found.placement
        self.result.nominations.append(
            Nomination(
                placement.job,
                placement.cluster,
                placement.queue,
                placement.tasks,
                until=self.masks.now + grace + self.bind_s,
                victims=tuple(dict.fromkeys([*mine, *inherited])),
            )
        )
        self.result.again.add(each.group)

    def _evict(self, victims: Ints, found: Choice) -> None:
        self.rights.stop(victims)
        running = self.snapshot.running
        for slot in victims.tolist():
            held = running.holdings[slot]
            self.result.evictions.append(
                Eviction(held.attempt, held.cluster, StopCause.PREEMPT, found.placement.job)
            )

    def _release(self, view: ClassView, uses: Uses) -> list[AttemptId]:
        """Let the job take what it chose; lower holds that do not fit beside it end."""
        lower = self._lower(view)
        for hold in lower:
            give_gangs(self.nodes, hold.uses, np.zeros(1, np.int64))
        mode = self.snapshot.hardware.models.mode
        taken = take_gangs(self.nodes, mode, uses, True)
        assert not taken.any(), "the gang was placed on these very nodes"
        victims: list[AttemptId] = []
        for hold in lower:
            if take_gangs(self.nodes, mode, hold.uses, True).any():
                del self.holds[hold.job.id]
                self.result.released.append(hold.job.id)
                victims += hold.nomination.victims
        return victims

    def _lower(self, view: ClassView) -> list[Hold]:
        if not view.request.terms.preempts:
            return []
        lower = [h for h in self.holds.values() if h.job.priority < view.priority]
        return sorted(lower, key=lambda hold: (-hold.job.priority, hold.job.id))

    def _stopping_on(self, uses: Uses, victims: Ints) -> Ints:
        """Victims, old and new, with tasks on the rows that the job takes."""
        running = self.snapshot.running
        old = np.flatnonzero(running.live & running.stopping)
        slots = np.concatenate([old, np.flatnonzero(self._evicted), victims])
        slots = np.unique(slots)
        theirs = self._uses(slots)
        on = np.isin(theirs.row, uses.row)
        of = np.repeat(np.arange(len(slots)), np.diff(theirs.first_task))
        return slots[np.unique(of[on])]

    @property
    def _evicted(self) -> Bools:
        running = self.snapshot.running
        gone: Bools = self.rights.gone & running.live & ~running.stopping
        return gone

    def _charge(self, view: ClassView, victims: Ints) -> None:
        limits, asked = self.snapshot.limits, self._amounts(view)
        for number in range(len(limits.limit)):
            if number in view.limits:
                self.used[number] += _of_kind(asked, int(limits.kind[number]))
            self.used[number] -= self._freed(number, victims)

    def _units_left(self, view: ClassView, victims: Ints) -> int:
        used = self.used.copy()
        old = np.flatnonzero(self.snapshot.running.live & self.snapshot.running.stopping)
        for number in view.limits:
            used[number] -= self._freed(number, np.concatenate([old, victims]))
        return units_left(view, self.snapshot, used=used)

    def _freed(self, number: int, slots: Ints) -> int:
        limits = self.snapshot.limits
        below = slots[self.rights.below(limits.queues[number], slots)]
        return _of_kind(self.rights.units[below].sum(axis=0), int(limits.kind[number]))

    def _amounts(self, view: ClassView) -> Ints:
        return amounts(view, self.rights.held.shape[1])

    def _uses(self, slots: Ints) -> Uses:
        return uses_of(self.snapshot.running.tasks, slots, self.snapshot.nodes)


def _of_kind(amounts: Ints, kind: int) -> int:
    return int(amounts.sum() if kind == ALL_KINDS else amounts[kind])


def hold_slices(nodes: Nodes, uses: Uses) -> None:
    """Slices that a hold shares with its victims are its own once these are gone."""
    rows = np.repeat(uses.row, np.diff(uses.first_grant))
    np.bitwise_or.at(nodes.slices, (rows, uses.device), uses.bits.astype(np.int16))
