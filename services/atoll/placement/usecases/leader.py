"""The leader's work, one step at a time; who calls the steps and when is for the loops."""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from atoll.core.engine.cycle import CycleLimits
from atoll.core.engine.deadlines.making_room import Borrowed, plan_with
from atoll.core.engine.deadlines.promise import kept
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.engine.verify import verify
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import AttemptId, ClusterName, JobId, ShardId
from atoll.core.model.inventory import ClusterState
from atoll.core.model.lifecycle import JobState, StopCause
from atoll.core.model.messages import Decision
from atoll.core.model.plan import Plan
from atoll.core.policies.interfaces import Policies
from atoll.core.state.shares import HALF_LIFE_S
from atoll.core.state.snapshot import Snapshot
from atoll.placement.usecases.commit import Committed
from atoll.placement.usecases.commit_plan import PlanCommitted, commit_plan
from atoll.placement.usecases.doom import end_doomed
from atoll.placement.usecases.foresight import Foresight
from atoll.placement.usecases.memory import Absorbed, LeaderMemory
from atoll.placement.usecases.outlook import Outlook
from atoll.placement.usecases.promises import Promises
from atoll.placement.usecases.rejections import AvoidanceRules, Rejection, RejectionBook
from atoll.placement.usecases.revoke import Revoked, declare_lost, revoke
from atoll.placement.usecases.silence import SilenceLimits, SilenceWatch, Verdict
from atoll.placement.usecases.sizing import Sizing, may_give_back, standing
from atoll.ports.clock import Clock
from atoll.ports.store.common import Cursor, Fence
from atoll.ports.store.placement import PlacementStore

MOST_REFUSALS: Final = 20


@dataclass(frozen=True, slots=True)
class LeaderRules:
    """The leader's settings."""

    bind_timeout_s: float
    silence: SilenceLimits
    avoidance: AvoidanceRules
    max_placements: int
    """Placements in one cycle, at most: bounds the transaction."""
    max_revokes: int
    """Attempts taken back in one transaction, at most: a lost cluster re-places at this rate."""
    max_lag: int
    """Decisions that an agent may have open before it gets no new work."""
    half_life_s: float = HALF_LIFE_S
    """In which the past use of queues counts half."""


@dataclass(slots=True)
class Counters:
    """What happened since this process leads."""

    cycles: int = 0
    placements: int = 0
    rollbacks: int = 0
    stops: int = 0
    preempted: int = 0
    """Attempts that were stopped for others."""
    booked: int = 0
    """Those of them that were stopped for bookings."""
    resized: int = 0
    """Changes of size of running attempts."""
    dropped: int = 0
    lost: int = 0
    rebooked: int = 0
    """Times that bookings changed under a plan or before one."""


@dataclass(slots=True)
class Leader:
    """One term of leadership over one shard. Steps are never run two at a time."""

    store: PlacementStore
    clock: Clock
    shard: ShardId
    rules: LeaderRules
    policies: Policies
    memory: LeaderMemory
    fence: Fence
    cursor: Cursor
    watch: SilenceWatch
    book: RejectionBook
    counters: Counters = field(default_factory=Counters)
    promises: Promises = field(default_factory=Promises)
    outlook: Outlook = field(default_factory=Outlook)
    foresight: Foresight = field(default_factory=Foresight)
    sizing: Sizing = field(default_factory=Sizing)
    refusals: deque[Rejection] = field(default_factory=lambda: deque(maxlen=MOST_REFUSALS))
    """The latest, until somebody has told them to the log."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held around every step and every command that writes."""

    def replace_by(self, renewed: "Leader") -> None:
        """Go on with what another load found, under the same lock."""
        self.memory, self.book, self.watch = renewed.memory, renewed.book, renewed.watch
        self.fence, self.cursor = renewed.fence, renewed.cursor

    async def catch_up(self) -> None:
        """Learn what changed since the last look, and act on refusals and ended dependencies."""
        absorbed = await self._learn()
        if absorbed.rebooked:
            await self.take_bookings(await self.store.read_fence(self.shard))

    async def take_bookings(self, fence: Fence) -> bool:
        """Go on under a fence as it stands, if only bookings have changed since the last commit.

        What they are is learnt after the fence is read, so all that it knows of is known then.
        """
        same = replace(fence, booking_rev=self.fence.booking_rev) == self.fence
        if not same or fence == self.fence:
            return False
        self.counters.rebooked += 1
        # The steps that follow from what is learnt commit under it, too.
        self.fence = fence
        try:
            await self._learn()
        except DomainError:
            # Whatever it is, everything is to be loaded anew.
            return False
        return True

    async def _learn(self) -> Absorbed:
        delta = await self.store.catch_up(self.shard, self.cursor)
        absorbed = self.memory.absorb(delta, now=self.clock.monotonic())
        self.cursor = delta.cursor
        await self.act_on(absorbed)
        return absorbed

    async def act_on(self, absorbed: Absorbed) -> None:
        """Remember refusals; let jobs go on whose dependencies ended, or end them."""
        self.counters.rollbacks += len(absorbed.rejections)
        self.refusals.extend(absorbed.rejections)
        await self.note(absorbed.rejections)
        states = dict(absorbed.ended)
        if absorbed.new_needs:
            states |= await self.store.job_states(absorbed.new_needs)
        await self.settle(states)
        owners = absorbed.new_owners
        if not owners.nobody:
            found = await self.store.marked(self.shard, owners)
            self.memory.world.mark(self.memory.marks.of(found))

    async def note(self, rejections: Sequence[Rejection]) -> None:
        """Mark nodes that refused, and avoid who refuses again and again."""
        if not rejections:
            return
        now = self.clock.now()
        rows = self.book.note(rejections, now=now)
        suspects = sorted({(node, r.inventory_number) for r in rejections for node in r.nodes})
        async with self.store.begin() as tx:
            after = await tx.require(self.fence)
            await tx.suspect_nodes(suspects)
            await tx.put_avoidances(rows)
        self.fence = after
        self.memory.world.suspect_nodes(suspects)
        self.memory.world.set_avoidances(self.book.active(now=now))

    async def settle(self, states: Mapping[JobId, JobState]) -> None:
        """Let jobs go on whose dependencies succeeded; end those whose dependencies did not."""
        settled = self.memory.settle(dict(states))
        while settled.doomed:
            ended = await end_doomed(self.store, self.fence, settled.doomed)
            self.fence = ended.fence
            self.memory.world.remove_pending(ended.jobs)
            settled = self.memory.settle(dict.fromkeys(ended.jobs, JobState.CANCELLED))

    async def take_back(self) -> list[Decision]:
        """Void or stop what was cancelled or found no answer in time; the decisions to publish."""
        causes = self.memory.to_revoke(now=self.clock.monotonic())
        if not causes:
            return []
        batch = dict(sorted(causes.items())[: self.rules.max_revokes])
        revoked = await revoke(self.store, self.fence, batch)
        self._took_back(batch, revoked)
        return list(revoked.decisions)

    async def schedule(self) -> Committed | None:
        """Plan on a frozen snapshot, verify, commit; None when there was nothing to place."""
        now = self.clock.now()
        made = await self._plan(now) if self.memory.world.has_work(now) else Plan()
        lapsed = self.memory.lapsed()
        if made.empty and not made.released and not lapsed:
            self.memory.newcomers.looked_at()
            return None
        done = await commit_plan(
            self.store,
            self.fence,
            made,
            bind_timeout_s=self.rules.bind_timeout_s,
            lapsed=lapsed,
        )
        return self._took_in(made, done)

    async def listen(self, *, dispatch_alive: bool) -> list[Decision]:
        """Look at heartbeats: mark silent clusters, give lost ones up; decisions to publish."""
        clusters = await self.store.heartbeats(self.shard)
        verdicts = self.watch.look(
            clusters, now=self.clock.monotonic(), dispatch_alive=dispatch_alive
        )
        await self._mark(verdicts)
        states = {v.cluster: v.state for v in verdicts}
        self.memory.put_clusters([replace(c, state=states.get(c.name, c.state)) for c in clusters])
        lost = [c for c in self.memory.clusters.values() if c.state is ClusterState.LOST]
        victims = [a for c in lost for a in self.memory.live_on(c.name)][: self.rules.max_revokes]
        if not victims:
            return []
        return await self._give_up(victims, {c.name: c.last_seen for c in lost})

    async def _plan(self, now: float) -> Plan:
        world = self.memory.world
        snapshot = world.freeze(now, self.rules.max_placements)
        rng = np.random.default_rng((self.fence.epoch.revision, self.counters.cycles))
        asks = standing(self.memory, self.promises.early(now))
        given = may_give_back(snapshot, self.memory, asks, now=now)
        made = await asyncio.to_thread(self._decide, snapshot, given, asks, now=now, rng=rng)
        self.counters.cycles += 1
        world.note_waiting(snapshot, made)
        self.outlook.note(snapshot, made)
        return made

    def _decide(
        self,
        snapshot: Snapshot,
        given: Borrowed,
        asks: Sequence[Ask],
        *,
        now: float,
        rng: np.random.Generator,
    ) -> Plan:
        # Off the event loop: the kernels release the GIL.
        most, bind_s = self.rules.max_placements, self.rules.bind_timeout_s
        claims = kept(snapshot, asks, now=now) if asks else ()
        limits = CycleLimits(max_placements=most, bind_s=bind_s, claims=claims)
        policies, memo = self.policies, self.memory.memo
        made, self.sizing.shrinks = plan_with(
            snapshot, policies, given, now=now, rng=rng, limits=limits, memo=memo
        )
        verify(made, self.memory.world.ledger, now=now)
        return made

    def _took_in(self, made: Plan, done: PlanCommitted) -> Committed:
        committed = done.committed
        ended = [outcome.attempt for outcome in done.revoked.voided]
        self._took_back([a.id for a in (*done.revoked.stopping, *ended)], done.revoked)
        self.fence = committed.fence
        self.memory.placed(committed.placed, now=self.clock.monotonic())
        placed = [item.placement.job for item in committed.placed]
        self.foresight.record.started(placed, now=self.clock.now())
        self.memory.nominated(done.nominations, released=made.released)
        self.counters.placements += len(committed.placed)
        drained = sum(e.cause is StopCause.DRAIN for e in made.evictions)
        self.counters.preempted += len(done.revoked.stopping) + len(ended) - drained
        self.counters.booked += sum(e.cause is StopCause.BOOKING for e in made.evictions)
        self.counters.dropped += len(committed.dropped)
        prompt = self.memory.newcomers.looked_at(
            placed,
            cut=len(made.placements) >= self.rules.max_placements,
        )
        # More of the same class may have a claim, and what was never sent is free already.
        again = bool(done.nominations or ended)
        return replace(committed, prompt=prompt, again=again)

    def _took_back(self, causes: Iterable[AttemptId], revoked: Revoked) -> None:
        self.fence = revoked.fence
        self.counters.stops += len(revoked.stopping)
        self.memory.stopping(causes)

    async def _mark(self, verdicts: Sequence[Verdict]) -> None:
        if not verdicts:
            return
        async with self.store.begin() as tx:
            after = await tx.require(self.fence)
            known = await tx.lock_clusters(sorted(v.cluster for v in verdicts))
            for verdict in verdicts:
                if known[verdict.cluster].state is not verdict.state:
                    await tx.set_cluster_state(verdict.cluster, verdict.state)
            await tx.set_silence([(v.cluster, v.silent_s) for v in verdicts])
        self.fence = after

    async def _give_up(
        self, victims: Sequence[AttemptId], last_seen: Mapping[ClusterName, float]
    ) -> list[Decision]:
        revoked = await declare_lost(self.store, self.fence, victims, last_seen=last_seen)
        self.fence = revoked.fence
        self.counters.lost += len(revoked.voided)
        return list(revoked.decisions)
