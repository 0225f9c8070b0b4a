"""What the leader remembers between cycles, brought up to date from rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from atoll.core.engine.memo import Memo
from atoll.core.model.booking import Owners
from atoll.core.model.ids import AttemptId, ClusterName, JobId, QueueName
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.core.model.job import Attempt, Queue
from atoll.core.model.lifecycle import (
    TERMINAL_ATTEMPT,
    TERMINAL_JOB,
    AttemptState,
    AttemptWish,
    JobState,
    JobWish,
    StopCause,
)
from atoll.core.model.plan import GangPlacement, Nomination, Resize, run_facts, shape_key
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World
from atoll.placement.usecases.bookings import MarkBook
from atoll.placement.usecases.boots import BootBook
from atoll.placement.usecases.commit import Placed
from atoll.placement.usecases.dependencies import Dependencies, Settled
from atoll.placement.usecases.foresight import runs_of
from atoll.placement.usecases.newcomers import Newcomers
from atoll.placement.usecases.rejections import Rejection, rejections_of
from atoll.placement.usecases.sizes import SizeBook
from atoll.ports.store.placement import AttemptView, BurstGround, JobView, ShardDelta


@dataclass(slots=True)
class Live:
    """A live attempt."""

    cluster: ClusterName
    queue: QueueName
    shape_key: str
    requeue_on_lost: bool
    stopping: bool = False


@dataclass(slots=True)
class Absorbed:
    """What new rows brought that somebody has to act on."""

    rejections: list[Rejection] = field(default_factory=list)
    new_needs: set[JobId] = field(default_factory=set)
    """Jobs that newly seen jobs wait for; their states are not known yet."""
    ended: dict[JobId, JobState] = field(default_factory=dict)
    new_owners: Owners = field(default_factory=Owners)
    """Users and labels that a booking is for and none was before: known jobs may be theirs."""
    rebooked: bool = False
    """Bookings have changed."""


@dataclass(slots=True)
class LeaderMemory:
    """The shard as the leader knows it. Deadlines are monotonic seconds."""

    world: World
    bind_timeout_s: float
    max_lag: int
    """Decisions that an agent may have open before its cluster counts as behind."""
    live: dict[AttemptId, Live] = field(default_factory=dict)
    clusters: dict[ClusterName, Cluster] = field(default_factory=dict)
    queues: dict[QueueName, Queue] = field(default_factory=dict)
    cancels: set[AttemptId] = field(default_factory=set)
    """Attempts whose jobs are to be cancelled and that were not told yet."""
    dependencies: Dependencies = field(default_factory=Dependencies)
    memo: Memo = field(default_factory=Memo)
    """What plans keep of earlier ones over the same world."""
    newcomers: Newcomers = field(default_factory=Newcomers)
    sizes: SizeBook = field(default_factory=SizeBook)
    marks: MarkBook = field(default_factory=MarkBook)
    boots: BootBook = field(default_factory=BootBook)
    burst: BurstGround = field(default_factory=BurstGround)
    promised: set[AttemptId] = field(default_factory=set)
    """Live attempts of jobs whose deadline was guaranteed."""
    _held: set[JobId] = field(default_factory=set)
    """Jobs that have a row of what is held for them."""
    _deadlines: dict[AttemptId, float] = field(default_factory=dict)
    """In the order of their ends: the time allowed is the same for all."""

    def absorb(self, delta: ShardDelta, *, now: float) -> Absorbed:
        """Take in rows that changed. `now` is monotonic."""
        absorbed = Absorbed()
        self.put_clusters(delta.clusters)
        # Which nodes are rented is known before anything of them is.
        self._put_rentals(delta)
        self.world.upsert_nodes(delta.nodes)
        self._put_queues(delta)
        self._put_windows(delta, absorbed)
        # Ended attempts give back what they held before anybody asks for it.
        self._absorb_ended(delta.attempts, absorbed)
        self._absorb_live(delta.attempts, now=now)
        self._absorb_jobs(delta.jobs, absorbed)
        self.boots.absorb(delta.attempts, self.world)
        if delta.nominations:
            self._held = {nomination.job for nomination in delta.nominations}
            self.world.set_nominations(delta.nominations)
        return absorbed

    def _put_queues(self, delta: ShardDelta) -> None:
        self.world.set_queues(delta.queues)
        self.world.remove_queues(delta.queues_gone)
        self.queues.update((queue.name, queue) for queue in delta.queues)
        for name in delta.queues_gone:
            self.queues.pop(name, None)

    def _put_windows(self, delta: ShardDelta, absorbed: Absorbed) -> None:
        absorbed.rebooked = bool(delta.windows or delta.windows_gone)
        if absorbed.rebooked:
            absorbed.new_owners = self.marks.ask(delta.windows)
            self.world.drop_windows(delta.windows_gone)
            self.world.put_windows(delta.windows)

    def _put_rentals(self, delta: ShardDelta) -> None:
        retired = {c.name for c in self.clusters.values() if c.state is ClusterState.RETIRED}
        self.world.put_rentals(r for r in delta.rentals if r.cluster not in retired)
        if delta.burst is not None:
            self.burst = delta.burst
            self.world.set_burst_policies(delta.burst.policies)

    def put_clusters(self, clusters: Iterable[Cluster]) -> None:
        """Take in clusters as they stand now."""
        changed = list(clusters)
        self.clusters.update((c.name, c) for c in changed)
        behind = {c.name for c in changed if c.head_seq - c.acked_seq > self.max_lag}
        self.world.set_clusters(changed, behind=behind)

    def placed(self, placed: Sequence[Placed], *, now: float) -> None:
        """Take in what was committed."""
        self.world.add_allocations([_holding(item) for item in placed])
        self.world.remove_pending([item.placement.job for item in placed])
        for item in placed:
            self.live[item.attempt.id] = _live(item.placement)
            self.sizes.note(item.attempt, item.placement.request.terms, now=now)
            if item.placement.guaranteed:
                self.promised.add(item.attempt.id)
            self._deadlines[item.attempt.id] = now + self.bind_timeout_s

    def resized(
        self, attempts: Iterable[Attempt], resizes: Iterable[Resize], *, now: float
    ) -> None:
        """Take in what attempts hold from now on, by changes of size that were committed."""
        given = {resize.attempt: resize for resize in resizes}
        for attempt in attempts:
            self.world.resize(attempt.id, attempt.tasks)
            self.sizes.decided(attempt, given[attempt.id], now=now)

    def no_guarantee(self, attempts: Iterable[AttemptId]) -> None:
        """The deadlines of attempts are guaranteed no longer."""
        for attempt in attempts:
            self.promised.discard(attempt)
            held = self.world.ledger.holdings.get(attempt)
            if held is not None and held.run is not None:
                self.world.end_allocations([attempt])
                run = held.run._replace(guaranteed=False)
                self.world.add_allocations([held._replace(run=run)])

    def nominated(self, nominations: Sequence[Nomination], *, released: Iterable[JobId]) -> None:
        """Take in what is held for jobs from now on, and for which it is no longer."""
        self.world.add_nominations(nominations, instead_of=released)
        self._held = set(self.world.ledger.nominations)

    def lapsed(self) -> list[JobId]:
        """Jobs for which rows still hold what the world does not."""
        return sorted(self._held - self.world.ledger.nominations.keys())

    def ended(self, attempts: Iterable[AttemptId]) -> None:
        """Forget attempts that ended."""
        ended = list(attempts)
        self.world.end_allocations(ended)
        for attempt in ended:
            self.live.pop(attempt, None)
            self._deadlines.pop(attempt, None)
            self.cancels.discard(attempt)
        self.promised.difference_update(ended)
        self.sizes.forget(ended)

    def stopping(self, attempts: Iterable[AttemptId]) -> None:
        """Attempts that were told to stop: nothing more is wanted of them."""
        told = list(attempts)
        self.world.stopping(told)
        self.sizes.forget(told)
        for attempt in told:
            self._deadlines.pop(attempt, None)
            self.cancels.discard(attempt)
            if attempt in self.live:
                self.live[attempt].stopping = True

    def to_revoke(self, *, now: float) -> dict[AttemptId, StopCause]:
        """Attempts that must be taken back: cancelled, or without an answer in time."""
        causes = dict.fromkeys(self._overdue(now), StopCause.BIND_DEADLINE)
        return causes | {a: StopCause.CANCEL for a in self.cancels if a in self.live}

    def next_deadline(self) -> float | None:
        """When the next answer is due; monotonic."""
        return next(iter(self._deadlines.values()), None)

    def live_on(self, cluster: ClusterName) -> list[AttemptId]:
        """Live attempts whose jobs run elsewhere once the cluster is lost."""
        return sorted(
            a for a, live in self.live.items() if live.cluster == cluster and live.requeue_on_lost
        )

    def settle(self, states: dict[JobId, JobState]) -> Settled:
        """Let jobs that waited for others go on."""
        settled = self.dependencies.settle(states)
        for need in settled.succeeded:
            self.world.dependency_done(need)
        return settled

    def _overdue(self, now: float) -> Iterator[AttemptId]:
        for attempt, deadline in self._deadlines.items():
            if deadline > now:
                return
            yield attempt

    def _absorb_ended(self, views: Sequence[AttemptView], absorbed: Absorbed) -> None:
        ended = [v for v in views if v.attempt.state in TERMINAL_ATTEMPT]
        self.world.run_times.note(runs_of([v for v in ended if v.attempt.id in self.live]))
        self.ended([v.attempt.id for v in ended])
        for view in ended:
            absorbed.rejections.extend(rejections_of(view))

    def _absorb_live(self, views: Sequence[AttemptView], *, now: float) -> None:
        alive = [v for v in views if v.attempt.state not in TERMINAL_ATTEMPT]
        self._restore([v for v in alive if v.attempt.id not in self.live], now=now)
        for view in alive:
            self.world.resize(view.attempt.id, view.attempt.tasks)
            if view.run is not None:
                self.sizes.note(view.attempt, view.run.terms, now=now)
            if view.attempt.state is not AttemptState.ASSIGNED:
                self._deadlines.pop(view.attempt.id, None)
            if view.attempt.wish is AttemptWish.STOP:
                self.stopping([view.attempt.id])

    def _restore(self, views: Sequence[AttemptView], *, now: float) -> None:
        """Attempts that an earlier leader made: each gets a full period for its answer."""
        self.world.add_allocations([
            Holding(v.attempt.id, v.queue, v.attempt.cluster, v.attempt.tasks, v.run) for v in views
        ])
        for view in views:
            attempt = view.attempt
            self.live[attempt.id] = Live(
                attempt.cluster, view.queue, view.shape_key, requeue_on_lost=view.requeue_on_lost
            )
            self._deadlines[attempt.id] = now + self.bind_timeout_s
        self.promised.update(v.attempt.id for v in views if v.run is not None and v.run.guaranteed)

    def _absorb_jobs(self, views: Sequence[JobView], absorbed: Absorbed) -> None:
        gone = [v.pending.id for v in views if v.state is not JobState.QUEUED]
        self.world.remove_pending(gone)
        queued = [
            self.marks.marked(v.pending, v.marks) for v in views if v.state is JobState.QUEUED
        ]
        absorbed.new_needs.update(self.world.upsert_pending(queued))
        self.newcomers.enter(queued)
        for view in views:
            self._absorb_job(view, absorbed)

    def _absorb_job(self, view: JobView, absorbed: Absorbed) -> None:
        job = view.pending
        if view.state in TERMINAL_JOB:
            absorbed.ended[job.id] = view.state
        elif job.depends_on and view.state in (JobState.QUEUED, JobState.HELD):
            absorbed.new_needs.update(self.dependencies.add(job.id, job.depends_on))
        live = self.live.get(view.attempt) if view.attempt is not None else None
        wanted = live is not None and not live.stopping and view.wish is JobWish.CANCEL
        if wanted and view.attempt is not None:
            self.cancels.add(view.attempt)


def _holding(placed: Placed) -> Holding:
    placement = placed.placement
    facts = run_facts(placement, started_at=placed.attempt.created_at)
    return Holding(placement.attempt, placement.queue, placement.cluster, placement.tasks, facts)


def _live(placement: GangPlacement) -> Live:
    return Live(
        placement.cluster,
        placement.queue,
        shape_key(placement.request),
        requeue_on_lost=placement.request.needs_guard,
    )
