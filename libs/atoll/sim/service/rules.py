"""What must hold of the rows, checked at each commit: only what it writes is looked at."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeVar

from atoll.adapters.memory.store_rows import Rows
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, attempt_name, job_of
from atoll.core.model.inventory import Cluster
from atoll.core.model.job import Attempt, Job
from atoll.core.model.lifecycle import (
    ATTEMPT_MOVES,
    JOB_MOVES,
    TERMINAL_ATTEMPT,
    TERMINAL_JOB,
    AttemptState,
    JobEvent,
)
from atoll.core.model.messages import Decision, DecisionKind
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.ports.store.common import Allocation
from atoll.sim.service.witness import Court

S = TypeVar("S")
E = TypeVar("E")
Reach = Mapping[S, frozenset[S]]

LEGAL: Final = "I8 only legal transitions, terminal is final"
RISES: Final = "I8 revisions rise"
ONE_LIVE: Final = "I3 at most one live attempt per job"
DENSE: Final = "I7 decision numbers are dense"
ONE_OWNER: Final = "I4 at most one owner per device share"
WHOLE: Final = "I6 a gang is held whole or not at all"
HELD: Final = "I4 live attempts hold their capacity, ended ones do not"
FENCED: Final = "I5 no commit with a stale epoch"
REALLY: Final = "I4 what runs holds its capacity"
PREFIX: Final = "I7 acknowledged <= sent <= decided"


def reachable(moves: Mapping[tuple[S, E], S], alone: Collection[E] = ()) -> Reach[S]:
    """Where one transaction may take a state: any number of reports, or one event of `alone`."""
    found: dict[S, frozenset[S]] = {}
    for state in {*(state for state, _ in moves), *moves.values()}:
        seen, todo = {state}, [state]
        while todo:
            here = todo.pop()
            steps = {to for (at, event), to in moves.items() if at == here and event not in alone}
            todo += steps - seen
            seen |= steps
        single = {to for (at, event), to in moves.items() if at == state and event in alone}
        found[state] = frozenset(seen | single)
    return found


ALONE: Final = frozenset({
    JobEvent.PLACED,
    JobEvent.HELD,
    JobEvent.RELEASED,
    JobEvent.DEPENDENCY_FAILED,
})
"""Not from reports, which come in batches."""
JOB_PATHS: Final = reachable(JOB_MOVES, ALONE)
ATTEMPT_PATHS: Final = reachable(ATTEMPT_MOVES)


class Rules:
    """The invariants of the rows.

    `really_runs` tells whether a cluster runs an attempt now; `on_job` is told of jobs' moves.
    """

    def __init__(
        self,
        court: Court,
        really_runs: Callable[[ClusterName, AttemptId], bool],
        on_job: Callable[[Job | None, Job], None],
    ) -> None:
        self._court = court
        self._really_runs = really_runs
        self._on_job = on_job
        self._live: defaultdict[JobId, set[AttemptId]] = defaultdict(set)
        self._blocks: Counter[tuple[NodeId, int]] = Counter()
        self._slices: dict[tuple[NodeId, int], int] = {}
        self.checked = 0
        """Commits."""

    def check(self, rows: Rows) -> None:
        """Look at what a transaction is about to commit."""
        self.checked += 1
        for _, before, after in rows.shards.changes():
            if before is not None and after is not None:
                self._court.require(after.epoch >= before.epoch, FENCED, before, "->", after)
        for job, old, new in rows.jobs.changes():
            self._check_job(job, old, new)
        for attempt, was, becomes in rows.attempts.changes():
            self._check_attempt(attempt, was, becomes)
        self._check_allocations(rows)
        for _, row, now in rows.clusters.changes():
            self._check_cluster(row, now)
        self._check_decisions(rows)

    def _check_job(self, number: JobId, before: Job | None, after: Job | None) -> None:
        if after is None:
            return  # put away
        told = self._court.story
        if before is None or before.state is not after.state:
            self._on_job(before, after)
        if before is None:
            told.tell(f"job {number} submitted to {after.queue}", number)
            return
        require = self._court.require
        legal = after.state in JOB_PATHS[before.state]
        require(legal, LEGAL, f"job {number}: {before.state} -> {after.state}", job=number)
        final = before.state in TERMINAL_JOB
        require(
            not final or after.attempt is None, LEGAL, f"job {number} after its end", job=number
        )
        require(after.revision > before.revision, RISES, f"job {number}", job=number)
        if after.state is not before.state:
            why = f" ({after.reason})" if after.reason else ""
            told.tell(f"job {number} {before.state} -> {after.state}{why}", number)

    def _check_attempt(
        self, number: AttemptId, before: Attempt | None, after: Attempt | None
    ) -> None:
        if after is None:
            return
        job = job_of(number)
        name = f"attempt {attempt_name(number)} on {after.cluster}"
        was = before.state if before is not None else AttemptState.ASSIGNED
        self._court.require(
            after.state in ATTEMPT_PATHS[was], LEGAL, name, was, "->", after.state, job=job
        )
        if before is not None:
            self._court.require(after.revision > before.revision, RISES, name, job=job)
        live = self._live[job]
        if after.state in TERMINAL_ATTEMPT:
            live.discard(number)
        else:
            live.add(number)
            self._court.require(len(live) == 1, ONE_LIVE, sorted(live), job=job)
        if before is None or after.state is not before.state:
            self._court.story.tell(f"{name} {after.state} {after.cause}", job)

    def _check_allocations(self, rows: Rows) -> None:
        changed = list(rows.allocations.changes())
        for _, before, _ in changed:
            for row in before or ():
                self._give(row)
        for attempt, before, after in changed:
            for row in after or ():
                self._take(row)
            found = rows.attempts.get(attempt)
            if before and not after and found is not None:
                runs = self._really_runs(found.cluster, attempt)
                name = attempt_name(attempt)
                self._court.require(not runs, REALLY, f"{name} runs still", job=job_of(attempt))
        touched = {attempt for attempt, _, _ in changed}
        touched |= {attempt for attempt, _, _ in rows.attempts.changes()}
        for attempt in sorted(touched):
            self._check_held(rows, attempt)

    def _check_held(self, rows: Rows, number: AttemptId) -> None:
        attempt = rows.attempts.get(number)
        held = rows.allocations.get(number) or ()
        live = attempt is not None and attempt.state not in TERMINAL_ATTEMPT
        name, job = attempt_name(number), job_of(number)
        self._court.require(bool(held) == live, HELD, name, len(held), "rows", job=job)
        if attempt is None or not held:
            return
        wanted = {task.rank: len(task.devices) + 1 for task in attempt.tasks}
        found = Counter(row.rank for row in held)
        self._court.require(found == wanted, WHOLE, name, dict(found), wanted, job=job)

    def _take(self, row: Allocation) -> None:
        if row.device is None:
            return
        key, grant, job = (row.node, row.device.index), row.device, job_of(row.attempt)
        taken = self._slices.get(key, 0)
        told = f"device {key[1]} of node {key[0]}: {attempt_name(row.attempt)}"
        self._court.require(not taken & grant.slice_mask, ONE_OWNER, told, "slices", job=job)
        self._blocks[key] += grant.blocks
        self._slices[key] = taken | grant.slice_mask
        used = self._blocks[key]
        self._court.require(used <= BLOCKS_PER_DEVICE, ONE_OWNER, told, used, "%", job=job)
        self._court.require(not (used and self._slices[key]), ONE_OWNER, told, "mixed", job=job)

    def _give(self, row: Allocation) -> None:
        if row.device is not None:
            key = (row.node, row.device.index)
            self._blocks[key] -= row.device.blocks
            self._slices[key] = self._slices.get(key, 0) & ~row.device.slice_mask

    def _check_cluster(self, before: Cluster | None, after: Cluster | None) -> None:
        if after is None:
            return
        counters = f"{after.name}: {after.acked_seq} {after.sent_seq} {after.head_seq}"
        ordered = after.acked_seq <= after.sent_seq <= after.head_seq
        self._court.require(ordered, PREFIX, counters)
        if before is not None and after.state is not before.state:
            self._court.story.tell(f"cluster {after.name} is {after.state}")

    def _check_decisions(self, rows: Rows) -> None:
        for (cluster, number), before, after in rows.decisions.changes():
            if after is None:
                continue  # put away
            if before is not None:
                void = after[0].kind is DecisionKind.VOID
                self._court.require(void, DENSE, cluster, number, "given twice")
                continue
            first = number == 1 or rows.decisions.get((cluster, number - 1)) is not None
            self._court.require(first, DENSE, cluster, number, "has none before it")
            self._tell(after[0])

    def _tell(self, decision: Decision) -> None:
        name = attempt_name(decision.attempt)
        text = f"{decision.cluster} #{decision.number} {decision.kind} {name} {decision.cause}"
        self._court.story.tell(text, job_of(decision.attempt))
