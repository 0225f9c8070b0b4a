"""Lets elastic jobs shrink for those that wait, before anybody is stopped for these.

What a job has above its least size is borrowed. A trial plan of the jobs that
found no place, as if all borrowed tasks were gone, tells which of these are in the
way; the others stay.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.deadlines.borrowing import work_lost
from atoll.core.engine.deadlines.desk import Desk, SizeFacts
from atoll.core.engine.deadlines.elastic import ElasticRun, elastic_runs
from atoll.core.engine.deadlines.pools import whole_seconds
from atoll.core.engine.deadlines.quota import UNITS_PER_DEVICE
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.engine.memo import Memo
from atoll.core.model.ids import AttemptId, JobId
from atoll.core.model.plan import GangPlacement, Plan, Resize, TaskPlacement
from atoll.core.policies.interfaces import Objective, Policies
from atoll.core.state.columns import Nodes, scratch_copy
from atoll.core.state.ledger import flatten
from atoll.core.state.ledger_kernels import FINE, give_tasks, take_gangs, take_tasks
from atoll.core.state.limits import ALL_KINDS
from atoll.core.state.snapshot import QueueView, Snapshot

MOST_HELPED: Final = 64
"""Jobs that others shrink for in one cycle, at most."""
MOST_TRIES: Final = 8
"""Plans that are made in one cycle to let jobs shrink by less, at most."""
SLACK_S: Final = 30
"""A job that was promised its deadline keeps so much time to spare when it shrinks."""

Size: TypeAlias = tuple[ElasticRun, int]
"""A run and a number of tasks."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """What running elastic jobs could give back."""

    sizes: Mapping[AttemptId, SizeFacts]
    """Of attempts that have changed their size before."""
    runs: tuple[Size, ...] = ()
    """Those that may shrink now, and the least number of tasks of each."""
    ending: tuple[TaskPlacement, ...] = ()
    """Tasks that were told to end."""
    standing: tuple[Ask, ...] = ()
    """Queued jobs that were promised their deadline."""

    def __bool__(self) -> bool:
        return bool(self.runs or self.ending)


def borrowed(
    snapshot: Snapshot,
    ready: frozenset[AttemptId],
    sizes: Mapping[AttemptId, SizeFacts],
    *,
    ending: Sequence[TaskPlacement],
    standing: Sequence[Ask],
    now: float,
) -> Borrowed:
    """What those of `ready` could give back; `ending`: what others were told to give back.

    `standing`: queued jobs that were promised their deadline.
    """
    runs = (run for run in elastic_runs(snapshot, ready, sizes) if run.may_change(now))
    least = ((run, _least(run, now)) for run in runs)
    smaller = tuple((run, size) for run, size in least if size < run.size)
    return Borrowed(sizes, smaller, tuple(ending), tuple(standing))


def plan_with(
    snapshot: Snapshot,
    policies: Policies,
    given: Borrowed,
    *,
    now: float,
    rng: Generator,
    limits: CycleLimits,
    memo: Memo,
) -> tuple[Plan, tuple[Resize, ...]]:
    """A cycle's plan in which jobs shrink before others are stopped, and who shrinks."""
    if not given:
        return plan(snapshot, policies, now=now, rng=rng, limits=limits, memo=memo), ()
    calm = replace(limits, max_preemptors=0)
    again = copy.deepcopy(rng)
    made = plan(snapshot, policies, now=now, rng=rng, limits=calm, memo=memo)
    if not made.waiting:
        return made, ()
    trial = _Trial(snapshot, made, given, memo=memo)
    shrinks, helped = trial.run(policies, now=now, rng=again)
    spared = replace(limits, spared=helped)
    return plan(snapshot, policies, now=now, rng=again, limits=spared, memo=memo), shrinks


def _least(run: ElasticRun, now: float) -> int:
    """The least size that it may be given; one with a promise has to be through in time."""
    deadline = run.run.deadline_at - SLACK_S - now if run.run.guaranteed else float("inf")
    sizes = (size for size, _ in run.sizes if size < run.size and run.seconds(size, now) < deadline)
    return min(sizes, default=run.size)


class _Trial:
    """What waits, planned once as if everything borrowed were free."""

    def __init__(self, snapshot: Snapshot, made: Plan, given: Borrowed, *, memo: Memo) -> None:
        self._snapshot, self._made, self._given = snapshot, made, given
        # Trials differ in a few nodes from the cycle and from each other.
        self._memo = memo

    def run(
        self, policies: Policies, *, now: float, rng: Generator
    ) -> tuple[tuple[Resize, ...], frozenset[JobId]]:
        """Who shrinks, and the jobs that fit then."""
        self._plan = partial(self._planned, policies, now=now, rng=rng)
        shrinks, helped = self._try(self._given.runs)
        if shrinks and not _all_kept(self._snapshot, self._given, shrinks, now=now):
            shrinks, helped = self._try([r for r in self._given.runs if not r[0].run.guaranteed])
        if shrinks and policies.objective is Objective.GOODPUT:
            cheapest = sorted(self._given.runs, key=lambda each: work_lost(*each, now=now))
            shrinks, helped = self._try(self._fewest(cheapest, helped))
        kept = self._tightened(shrinks, helped)
        return tuple(_resize(run, size) for run, size in kept), helped

    def _fewest(self, runs: Sequence[Size], helped: frozenset[JobId]) -> Sequence[Size]:
        """The first of them that help as many as all."""
        for count in range(1, min(len(runs), MOST_TRIES)):
            if helped <= {placement.job for placement in self._plan(runs[:count])}:
                return runs[:count]
        return runs

    def _tightened(self, shrinks: Sequence[Size], helped: frozenset[JobId]) -> list[Size]:
        """The same with larger sizes, where those help as many.

        A plan takes any of the devices that come free, not those that are given up first.
        """
        kept, tries = list(shrinks), MOST_TRIES
        for at, (run, size) in enumerate(kept):
            larger = [tasks for tasks, _ in run.sizes if size < tasks < run.size]
            for tasks in reversed(larger):
                if not tries:
                    return kept
                tries -= 1
                trial = [*kept[:at], (run, tasks), *kept[at + 1 :]]
                if helped <= {placement.job for placement in self._plan(trial)}:
                    kept = trial
                    break
        return kept

    def _try(self, runs: Sequence[Size]) -> tuple[list[Size], frozenset[JobId]]:
        """Who shrinks to which size, and the jobs that fit then."""
        found = self._plan(runs)
        if not found:
            return [], frozenset()
        nodes = self._emptied(runs)
        _take(nodes, found, self._snapshot)
        kept = [(run, self._kept(nodes, run, least)) for run, least in _first_kept(runs)]
        shrinks = [(run, size) for run, size in kept if size < run.size]
        return shrinks, frozenset(placement.job for placement in found)

    def _planned(
        self,
        policies: Policies,
        runs: Sequence[Size],
        *,
        now: float,
        rng: Generator,
    ) -> tuple[GangPlacement, ...]:
        snapshot = replace(
            self._snapshot,
            nodes=self._emptied(runs),
            holds=(),
            rentals=self._snapshot.rentals.shut(),
            queue=_rest(self._snapshot.queue, self._made),
            limits=replace(self._snapshot.limits, used=self._used(runs)),
        )
        bounds = CycleLimits(MOST_HELPED, max_explained=0, max_preemptors=0)
        same = copy.deepcopy(rng)
        made = plan(snapshot, policies, now=now, rng=same, limits=bounds, memo=self._memo)
        return made.placements

    def _emptied(self, runs: Sequence[Size]) -> Nodes:
        """What is free once all borrowed tasks are gone and what was planned is there."""
        nodes = scratch_copy(self._snapshot.nodes)
        gone = [task for run, least in runs for task in run.tasks[least:]]
        uses = flatten([gone, self._given.ending], self._snapshot)
        give_tasks(nodes, uses, 0, len(uses.row))
        _take(nodes, self._made.placements, self._snapshot)
        return nodes

    def _used(self, runs: Sequence[Size]) -> NDArray[np.int64]:
        limits, kinds = self._snapshot.limits, self._snapshot.kinds
        used = limits.used.copy()
        for run, least in runs:
            units = (run.size - least) * run.each * UNITS_PER_DEVICE
            for number in limits.of(run.holding.queue):
                if limits.kind[number] in (ALL_KINDS, kinds.get(run.pool[1], ALL_KINDS)):
                    used[number] -= units
        return used

    def _kept(self, nodes: Nodes, run: ElasticRun, least: int) -> int:
        """The size that it can keep beside those that waited; what it keeps is taken."""
        mode = self._snapshot.hardware.models.mode
        size = least
        for task in run.tasks[least:]:
            uses = flatten([[task]], self._snapshot)
            if take_gangs(nodes, mode, uses, True)[0] != FINE:
                break
            size += 1
        if size == run.size:
            return size
        return max((tasks for tasks, _ in run.sizes if least <= tasks <= size), default=least)


def _resize(run: ElasticRun, size: int) -> Resize:
    drop = tuple(task.rank for task in run.tasks[size:])
    holding = run.holding
    return Resize(holding.attempt, holding.cluster, run.generation + 1, drop=drop)


def _first_kept(runs: Sequence[Size]) -> list[Size]:
    """Those with a promise keep theirs before others, then those that run the longest."""
    return sorted(runs, key=lambda each: (not each[0].run.guaranteed, each[0].run.started_at))


def _take(nodes: Nodes, placements: Iterable[GangPlacement], snapshot: Snapshot) -> None:
    uses = flatten([placement.tasks for placement in placements], snapshot)
    take_tasks(nodes, uses, 0, len(uses.row))


def _rest(queue: QueueView, made: Plan) -> QueueView:
    """The classes that wait, without the jobs that were placed."""
    placed = np.array([placement.job for placement in made.placements], np.int64)
    waiting = {(each.queue, each.request) for each in made.waiting}
    of = np.repeat(np.arange(len(queue.classes)), np.diff(queue.first))
    wanted = np.array([(v.queue, v.request) in waiting for v in queue.classes], np.bool_)
    jobs = np.flatnonzero(wanted[of] & ~np.isin(queue.job, placed))
    counts = np.bincount(of[jobs], minlength=len(queue.classes))[wanted]
    return QueueView(
        classes=tuple(view for view, w in zip(queue.classes, wanted, strict=True) if w),
        first=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        more=queue.more[wanted],
        job=queue.job[jobs],
        revision=queue.revision[jobs],
        submitted_at=queue.submitted_at[jobs],
        attempts=queue.attempts[jobs],
        deadline_at=queue.deadline_at[jobs],
        guaranteed=queue.guaranteed[jobs],
        preemptions=queue.preemptions[jobs],
        trace=[queue.trace[at] for at in jobs.tolist()],
    )


def _all_kept(snapshot: Snapshot, given: Borrowed, shrinks: Sequence[Size], *, now: float) -> bool:
    """Whether all that were promised their deadline meet it all the same."""
    smaller = {run.holding.attempt: (run, size) for run, size in shrinks if run.run.guaranteed}
    if not smaller:
        return True
    facts = dict(_facts(smaller.values(), now=now))
    devices = {attempt: size * run.each for attempt, (run, size) in smaller.items()}
    moment = whole_seconds(now, up=True)
    before = Desk(snapshot, moment, given.sizes)
    after = Desk(snapshot, moment, {**given.sizes, **facts}, instead=devices)
    late = {held.holding.attempt for held in before.late}
    if any(held.holding.attempt not in late for held in after.late):
        return False
    return len(after.keep(given.standing)) <= len(before.keep(given.standing))


def _facts(smaller: Iterable[Size], *, now: float) -> Iterator[tuple[AttemptId, SizeFacts]]:
    for run, _ in smaller:
        yield run.holding.attempt, SizeFacts(run.generation + 1, now, run.done_by(now))
