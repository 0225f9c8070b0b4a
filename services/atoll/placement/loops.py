"""Stands for election, leads, and steps down: the loops around the leader's steps."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from atoll.core.model.errors import DomainError, ErrorCode, Exhausted, StaleEpoch, Unavailable
from atoll.core.model.ids import ClusterName, ShardId
from atoll.core.model.messages import Decision
from atoll.core.policies.interfaces import Policies
from atoll.placement import telemetry
from atoll.placement.alarm import Alarm
from atoll.placement.looking_ahead import looked_ahead, told_wants, wanted
from atoll.placement.publish import Publisher
from atoll.placement.settings import PlacementSettings
from atoll.placement.usecases.audit import audit
from atoll.placement.usecases.change_sizes import change_sizes
from atoll.placement.usecases.foresight import remember
from atoll.placement.usecases.forget import Forgotten, forget_cluster
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.recovery import begin_term, resume
from atoll.placement.usecases.rentals import forget_rentals
from atoll.ports.clock import Clock
from atoll.ports.election import Election, ElectionUnavailable, Leadership
from atoll.ports.registry import RegistryPort, RegistryUnavailable
from atoll.ports.store.common import Contended, StoreUnavailable, UnknownOutcome
from atoll.ports.store.placement import PlacementStore
from atoll.ports.streams import Hints
from atoll.ports.topics import PLACEMENT
from atoll.runtime import logs
from atoll.runtime.terms import RETRY, LeadershipLost, repeat, until_lost

log = logs.logger(__name__)

NOTHING_HAPPENED: Final = (StoreUnavailable, Contended, Exhausted)
"""Nothing was committed: the same step may be tried again."""


class Candidate:
    """One replica: waits as a standby, leads when elected, for as long as the process lives."""

    def __init__(
        self,
        *,
        settings: PlacementSettings,
        store: PlacementStore,
        registry: RegistryPort | None,
        hints: Hints,
        publisher: Publisher,
        policies: Policies,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._store = store
        self._election: Election | None = None
        self._registry = registry
        self._hints = hints
        self._publisher = publisher
        self._policies = policies
        self._clock = clock
        self._alarm = Alarm(settings, clock)
        self.leader: Leader | None = None
        """Set while this replica leads."""

    async def stand(self, election: Election) -> None:
        """Campaign, lead, step down, and again."""
        self._election = election
        deposed: Leader | None = None
        refused = 0
        while True:
            leadership = await self._campaign(election, deposed)
            log.info("elected", epoch=str(leadership.epoch))
            try:
                await self._lead(leadership)
            except* (StaleEpoch, LeadershipLost) as why:
                log.warning("stepping down", why=str(why.exceptions[0]))
            finally:
                deposed, self.leader = self.leader, None
                telemetry.stands_by()
                await leadership.resign()
            refused = refused + 1 if deposed is None else 0
            if refused:
                # etcd was wiped or restored: until somebody raises the generation, or its
                # revisions have caught up, every election ends like this one.
                log.warning("the rows know a later epoch", hint="is /atoll/generation too low?")
                await self._clock.sleep(RETRY.wait_s(refused, 0.0))

    async def watch_hints(self) -> None:
        """Wake the cycle whenever somebody says that there is something new."""
        async for _ in self._hints.subscribe(PLACEMENT):
            self._alarm.ring()

    async def forget(self, name: ClusterName, *, fenced: bool) -> Forgotten:
        """Give a cluster up for good; its stream goes too."""
        leader = self.leader
        if leader is None:
            raise Unavailable("this replica does not lead", code=ErrorCode.NOT_LEADER)
        async with leader.lock:
            forgotten = await forget_cluster(self._store, leader.fence, name, fenced=fenced)
            leader.fence = forgotten.fence
        await self._publisher.drop(name)
        self._alarm.ring()
        return forgotten

    async def leader_address(self) -> str:
        """Where the present leader is reached; empty when nobody can tell."""
        if self._election is None:
            return ""
        try:
            return await self._election.leader() or ""
        except ElectionUnavailable:
            return ""

    async def _campaign(self, election: Election, deposed: Leader | None) -> Leadership:
        if deposed is None:
            return await election.campaign()
        # Without a quorum of etcd nobody can be elected. Stops need no capacity, so the last leader
        # goes on with them; the fence ends that as soon as there is a successor.
        stops = asyncio.create_task(self._stops_alone(deposed))
        try:
            return await election.campaign()
        finally:
            stops.cancel()
            await asyncio.wait([stops])  # to suppress its cancellation could lose one of ours
            if not stops.cancelled():
                stops.result()

    async def _stops_alone(self, leader: Leader) -> None:
        while True:
            try:
                async with leader.lock:
                    await leader.catch_up()
                    await self._publish(await leader.take_back())
            except StaleEpoch:
                return
            except (*NOTHING_HAPPENED, UnknownOutcome) as error:
                log.warning("stops are waiting", error=str(error))
            await self._clock.sleep(self._settings.period_s)

    async def _lead(self, leadership: Leadership) -> None:
        settings = self._settings
        leader = await begin_term(
            self._store,
            self._clock,
            leadership.epoch,
            shard=ShardId(settings.shard),
            rules=settings.rules,
            policies=self._policies,
        )
        self.leader = leader
        telemetry.leads()
        log.info("leading", epoch=str(leadership.epoch), queued=leader.memory.world.pending_count)
        await self._publisher.wake()
        self._alarm.ring()
        async with asyncio.TaskGroup() as group:
            group.create_task(until_lost(leadership))
            group.create_task(
                self._repeat(
                    leadership, self._cycle, wait=lambda: self._alarm.until_woken(self._present())
                )
            )
            group.create_task(self._every(leadership, self._listen, settings.listen_period_s))
            group.create_task(self._every(leadership, self._audit, settings.audit_period_s))
            group.create_task(self._every(leadership, remember, settings.remember_period_s))
            group.create_task(self._look_ahead(leadership))

    async def _every(
        self, leadership: Leadership, step: Callable[[Leader], Awaitable[None]], period_s: float
    ) -> None:
        await self._repeat(leadership, step, wait=lambda: self._clock.sleep(period_s))

    async def _repeat(
        self,
        leadership: Leadership,
        step: Callable[[Leader], Awaitable[None]],
        *,
        wait: Callable[[], Awaitable[None]],
    ) -> None:
        await repeat(leadership, lambda: self._step(step), wait=wait, clock=self._clock)

    async def _step(self, step: Callable[[Leader], Awaitable[None]]) -> bool:
        """Run one step; False when the store was away and nothing, or nobody knows what, happened.

        Raises StaleEpoch when somebody else leads.
        """
        leader = self._present()
        async with leader.lock:
            try:
                await step(leader)
            except NOTHING_HAPPENED as error:
                log.warning("nothing was committed, trying again", error=str(error))
                return False
            except DomainError as error:
                await self._find_out(leader, error)
        return True

    async def _find_out(self, leader: Leader, error: DomainError) -> None:
        """Whether the last commit happened, or somebody else leads: the rows tell.

        Reading the fence waits for a commit that is still under way. Whatever else went wrong
        (a cursor that is too old, a plan that the store refused), rows are the truth.
        """
        try:
            fence = await self._store.read_fence(leader.shard)
        except NOTHING_HAPPENED:
            # Still nobody knows; the next step fails at the fence and comes here again.
            self._alarm.ring()
            await self._clock.sleep(RETRY.first_s)
            return
        if fence.epoch != leader.fence.epoch:
            raise StaleEpoch from error
        if await leader.take_bookings(fence):
            self._alarm.ring()
            return
        log.warning("loading anew", code=error.code, error=str(error))
        telemetry.RELOADS.inc()
        with suppress(*NOTHING_HAPPENED):
            renewed = await resume(
                self._store, self._clock, fence, rules=leader.rules, policies=self._policies
            )
            leader.replace_by(renewed)
            await self._publisher.wake()
        self._alarm.ring()

    def _present(self) -> Leader:
        if self.leader is None:
            raise LeadershipLost("this replica does not lead")
        return self.leader

    async def _cycle(self, leader: Leader) -> None:
        with telemetry.CYCLE_SECONDS.time():
            await leader.catch_up()
            for name in await forget_rentals(leader):
                await self._publisher.drop(name)
            await self._publish(await leader.take_back())
            committed = await leader.schedule()
        telemetry.observe(leader, committed)
        if committed is not None:
            await self._publish(committed.decisions)
        await self._publish(await change_sizes(leader))
        if committed is None:
            return
        # Perhaps the bound cut the plan short, or a job fell out: look again at once.
        full = len(committed.placed) >= self._settings.max_placements
        if committed.again or committed.dropped or full:
            self._alarm.ring()

    async def _listen(self, leader: Leader) -> None:
        await self._publish(await leader.listen(dispatch_alive=await self._dispatch_alive()))
        telemetry.observe_clusters(leader)

    async def _look_ahead(self, leadership: Leadership) -> None:
        period_s = pause_s = self._settings.forecast_period_s
        while leadership.valid():
            await self._clock.sleep(pause_s)
            pause_s = max(period_s, await looked_ahead(self._present(), self._clock))
            await self._tell_wants()

    async def _tell_wants(self) -> None:
        found = await wanted(self._present())
        if found is not None:
            await self._step(lambda leader: told_wants(leader, found, self._hints))

    async def _audit(self, leader: Leader) -> None:
        await leader.catch_up()
        differences = await audit(leader)
        telemetry.LEDGER_DIFFERENCES.set(len(differences))
        for difference in differences[:20]:
            log.error("ledger and rows differ", difference=str(difference))

    async def _dispatch_alive(self) -> bool:
        # Without a registry, or when it cannot be read, silence is counted all the same only if
        # there was ever something to hear: heartbeats come through dispatch alone.
        if self._registry is None:
            return True
        try:
            return bool(await self._registry.list("dispatch"))
        except RegistryUnavailable:
            return False

    async def _publish(self, decisions: Sequence[Decision]) -> None:
        if decisions:
            await self._publisher.publish(decisions)
