"""Everything that may go wrong, at once and by chance, from seeds: what must never be is not."""

import contextlib
from dataclasses import dataclass, field
from random import Random

import pytest

from atoll.burst.providers.simcloud import Machine
from atoll.burst.usecases.by_hand import Request
from atoll.core.model.burst import ENDED, InstanceState
from atoll.core.model.errors import ErrorCode, Exhausted, StaleEpoch
from atoll.core.model.ids import QueueName
from atoll.ports.provider import Phase, ProviderUnavailable
from atoll.ports.store.common import StoreUnavailable, UnknownOutcome
from tests.services.burst.worlds import DOLLAR, NLP, SMALL, Leader, World

STEPS = 120
REAPER_S = 60.0
PER_HOUR = 6
VISION = QueueName("vision")
STANDING = frozenset({Phase.PENDING, Phase.RUNNING})
CUT_OFF = (StoreUnavailable, UnknownOutcome)


@dataclass
class Storm:
    """A world, its leader, and what has been seen of it."""

    world: World
    leader: Leader
    dice: Random
    alone: dict[str, float] = field(default_factory=dict)
    """Machines without a live row, and since when."""
    reaped_at: float = 0.0
    bound: int = PER_HOUR * DOLLAR
    """The highest budget of an hour that what lives was taken under."""

    async def blow(self) -> None:
        """One thing goes wrong, or on."""
        await self.dice.choice((
            self.change_leaders, self.cut_provider_off, self.change_cloud, self.ask, self.release,
            self.cut_store_off, self.jump, self.change_budget, self.want,
        ))()  # fmt: skip

    async def change_leaders(self) -> None:
        self.leader = await self.world.lead()

    async def cut_provider_off(self) -> None:
        mischief = self.world.clouds["cloud"].mischief
        if self.dice.random() < 0.5:
            mischief.errors += [ProviderUnavailable("throttled")] * 3
        else:
            mischief.lost_answers += 1

    async def change_cloud(self) -> None:
        cloud = self.world.clouds["cloud"].cloud
        dry, stuck = self.dice.choice((0.0, 0.0, 1.0)), self.dice.choice((0.0, 0.5))
        changed = {"no_capacity": dry, "never_up": stuck}
        cloud.settings = cloud.settings.model_copy(update=changed)

    async def release(self) -> None:
        with contextlib.suppress(*CUT_OFF):
            await self.world.use.by_hand.release([], every=True, now=self.dice.random() < 0.5)

    async def jump(self) -> None:
        self.world.clock.jump(self.dice.choice((-30.0, 90.0)))

    async def change_budget(self) -> None:
        limit = self.dice.choice((2, 4, PER_HOUR))
        with contextlib.suppress(*CUT_OFF):
            await self.world.allow(per_hour=limit, hour_of_delay=20 * DOLLAR)

    async def want(self) -> None:
        with contextlib.suppress(*CUT_OFF):
            await self.world.want(*self.dice.sample(range(1, 40), self.dice.randrange(8)))

    async def ask(self) -> None:
        queue = self.dice.choice((None, NLP, VISION))
        asked = Request(self.dice.randrange(1, 4), SMALL, queue=queue, keep_s=600.0)
        with contextlib.suppress(*CUT_OFF, Exhausted):
            await self.world.use.by_hand.request(asked, principal="ann")

    async def cut_store_off(self) -> None:
        """The next commit fails, or its reply is lost."""
        database, lost = self.world.database, self.dice.random() < 0.5

        def hook(_: object) -> None:
            database.before_commit = database.after_commit = None
            if lost:
                raise UnknownOutcome("no reply", code=ErrorCode.UNAVAILABLE)
            raise StoreUnavailable("cut off", code=ErrorCode.UNAVAILABLE)

        if lost:
            database.after_commit = hook
        else:
            database.before_commit = hook

    async def go_on(self) -> None:
        """What the loop does; what fails is tried again the next time."""
        for act in (self.leader.upkeep.count_spend, self.leader.decide, self.leader.live):
            try:
                await act()
            except StaleEpoch:
                self.leader = await self.world.lead()
            except CUT_OFF:
                continue
        await self.join_some()
        if self.world.clock.monotonic() >= self.reaped_at + REAPER_S:
            await self.reap()

    async def reap(self) -> None:
        try:
            await self.leader.reap()
            self.reaped_at = self.world.clock.monotonic()
        except (StaleEpoch, *CUT_OFF):
            self.leader = await self.world.lead()

    async def join_some(self) -> None:
        up = {each.token for each in self.standing() if each.up_at}
        for row in await self.world.store.burst.live_instances():
            if row.state is InstanceState.BOOTING and row.token in up and self.dice.random() < 0.7:
                with contextlib.suppress(*CUT_OFF):
                    await self.world.join(row)

    def standing(self) -> list[Machine]:
        world, cloud = self.world, self.world.clouds["cloud"].cloud
        now = world.clock.now()
        return [
            m for m in world.machines() if cloud.phase(m, now) in {Phase.PENDING, Phase.RUNNING}
        ]

    async def check(self) -> None:
        """What must hold after each step."""
        burst = self.world.store.burst
        rows = await burst.live_instances()
        budgets = {each.queue: each for each in await burst.budgets()}
        assert budgets[None].rate == sum(row.offer.price for row in rows) <= self.bound
        for queue in (NLP, VISION):
            own = sum(row.offer.price for row in rows if row.queue == queue)
            assert (budgets[queue].rate if queue in budgets else 0) == own
        spent = await burst.spent(None, since=0, until=1e12)
        assert max((amount for _, amount in spent), default=0) <= self.bound
        every = await burst.list_instances(ended=True, before=0, limit=10_000)
        assert sum(amount for _, amount in spent) == sum(row.spent for row in every)
        tokens = [machine.token for machine in self.world.machines()]
        assert len(tokens) == len(set(tokens))
        self.look_for_orphans({row.token for row in rows})

    def look_for_orphans(self, live: set[str]) -> None:
        now = self.world.clock.monotonic()
        alone = {m.token for m in self.standing()} - live
        self.alone = {token: self.alone.get(token, now) for token in alone}
        for since in self.alone.values():
            assert now - since <= 2 * REAPER_S


@pytest.mark.parametrize("seed", range(12))
async def test_no_storm_leaves_anything_running_or_spends_too_much(seed: int) -> None:
    world = World(boot_deadline_s=180, instance_drain_s=30, instance_grace_s=10)
    await world.allow(per_hour=PER_HOUR, hour_of_delay=20 * DOLLAR)
    storm = Storm(world, await world.lead(), Random(seed))
    for _ in range(STEPS):
        await storm.blow()
        await storm.go_on()
        await storm.check()
        await world.clock.advance(storm.dice.choice((1.0, 5.0, 20.0)))
    assert len(world.machines()) >= 3
    await calm(storm)
    rows = await world.store.burst.list_instances(ended=True, before=0, limit=10_000)
    assert {row.state for row in rows} <= ENDED
    assert storm.standing() == []
    assert {each.rate for each in await world.store.burst.budgets()} == {0}
    for row in rows:
        paid = int(row.ended_at) - int(row.created_at) if row.created_at else 0
        assert row.spent >= max(0, paid) * row.offer.price // 3600


async def calm(storm: Storm) -> None:
    """The kill switch, and nothing goes wrong any more."""
    world, cloud = storm.world, storm.world.clouds["cloud"]
    world.database.before_commit = world.database.after_commit = None
    cloud.mischief.errors.clear()
    await world.allow(killed=True)
    await world.want()
    for _ in range(40):
        await world.clock.advance(15)
        await storm.go_on()
        await storm.check()
