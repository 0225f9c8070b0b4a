"""Stores that fail at the worst moment: nothing is lost, and nothing is written twice."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import pytest

from atoll.adapters.memory.clock import ManualClock, settle
from atoll.adapters.memory.store import MemoryStore
from atoll.adapters.memory.streams import MemoryHints
from atoll.adapters.postgres.store import PostgresStore
from atoll.adapters.system import SystemIds
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.core.model.errors import ErrorCode, Unavailable
from atoll.ports.notify import Notifier
from atoll.ports.store.common import Contended, StoreUnavailable, UnknownOutcome
from atoll.ports.store.submission import SubmissionStore, SubmissionTx
from atoll.ports.store.upkeep import Pruned, Retention
from atoll.submission.loops import MAINTAIN_EVERY_S, PRUNE_EVERY_S, PRUNE_LIMIT, Keeper
from tests.services.submission.worlds import Stores, World, refusal, spec, uuid
from tests.support.proxy import Proxy
from tests.support.servers import PostgresLike
from tests.support.waiting import eventually


class FlakyStore:
    """A store whose transactions end as the test wants: `after` a commit, or in place of it."""

    def __init__(self, store: SubmissionStore) -> None:
        self._store = store
        self.instead: list[Exception] = []
        self.after: list[Exception] = []
        self.begun = 0
        self.before_commit: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[SubmissionTx]:
        self.begun += 1
        async with self._store.begin() as tx:
            yield tx
            if self.instead:
                raise self.instead.pop(0)
            self.before_commit()
        if self.after:
            raise self.after.pop(0)


class FlakyStores:
    """A store with a flaky side for submission."""

    def __init__(self, store: Stores) -> None:
        self.flaky = FlakyStore(store.submission)
        self.placement = store.placement
        self.dispatch = store.dispatch

    @property
    def submission(self) -> SubmissionStore:
        return cast(SubmissionStore, self.flaky)


@pytest.fixture
def flaky_stores(memory_store: MemoryStore) -> FlakyStores:
    return FlakyStores(memory_store)


@pytest.fixture
async def flaky_world(flaky_stores: FlakyStores) -> AsyncIterator[World]:
    made = World(flaky_stores)
    await made.start()
    yield made
    await made.close()


def unknown() -> UnknownOutcome:
    return UnknownOutcome("the reply to COMMIT was lost", code=ErrorCode.UNAVAILABLE)


def away() -> StoreUnavailable:
    return StoreUnavailable("connection lost", code=ErrorCode.UNAVAILABLE)


def contended() -> Contended:
    return Contended("deadlock detected")


async def listed(world: World) -> int:
    answer = await world.caller().ListJobs(api.ListJobsRequest())
    return len(answer.jobs)


@pytest.mark.parametrize("key", ["", uuid()], ids=["without a key", "with a key"])
async def test_a_lost_reply_to_a_commit_that_happened_writes_nothing_twice(
    flaky_world: World, flaky_stores: FlakyStores, key: str
) -> None:
    flaky_stores.flaky.after = [unknown()]
    numbers = await flaky_world.caller().submit(spec("a"), spec("b"), key=key)
    assert len(numbers) == 2
    assert await listed(flaky_world) == 2


async def test_a_lost_reply_to_a_commit_that_did_not_happen_is_made_up_for(
    flaky_world: World, flaky_stores: FlakyStores
) -> None:
    flaky_stores.flaky.instead = [unknown()]
    assert len(await flaky_world.caller().submit(spec("a"))) == 1
    assert await listed(flaky_world) == 1


async def test_an_outcome_that_stays_unknown_is_told(
    flaky_world: World, flaky_stores: FlakyStores
) -> None:
    flaky_stores.flaky.after = [unknown(), unknown(), unknown()]
    key = uuid()
    found = await refusal(flaky_world.caller().submit(spec("a"), key=key))
    assert isinstance(found, Unavailable)
    assert len(await flaky_world.caller().submit(spec("a"), key=key)) == 1
    assert await listed(flaky_world) == 1


async def test_contention_is_tried_again(flaky_world: World, flaky_stores: FlakyStores) -> None:
    flaky_stores.flaky.instead = [contended(), contended()]
    (number,) = await flaky_world.caller().submit(spec("a"))
    flaky_stores.flaky.instead = [contended()]
    await flaky_world.caller().CancelJobs(api.CancelJobsRequest(job_ids=[number]))
    assert flaky_stores.flaky.begun == 5


async def test_a_store_that_is_away_is_told_to_all_who_wait(
    flaky_world: World, flaky_stores: FlakyStores
) -> None:
    flaky_stores.flaky.instead = [away()] * 10
    calls = [refusal(flaky_world.caller().submit(spec("a"))) for _ in range(10)]
    assert {found.code for found in await asyncio.gather(*calls)} == {ErrorCode.UNAVAILABLE}
    flaky_stores.flaky.instead = []
    assert await listed(flaky_world) == 0


async def test_one_call_that_breaks_a_transaction_breaks_no_other(
    flaky_world: World, flaky_stores: FlakyStores
) -> None:
    flaky_stores.flaky.instead = [RuntimeError("a bug that one call brings out")]
    calls = [flaky_world.caller().submit(spec(f"j{i}")) for i in range(8)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    # The failed transaction held some of the calls; only one that was alone in it may fail.
    assert sum(isinstance(outcome, list) for outcome in outcomes) >= 7
    assert await listed(flaky_world) == sum(isinstance(o, list) for o in outcomes)


async def test_a_commit_whose_reply_the_network_drops_is_found_again(
    store_dsn: str, postgres_server: PostgresLike
) -> None:
    async with AsyncExitStack() as exits:
        proxy = await exits.enter_async_context(Proxy(postgres_server.port))
        through = store_dsn.replace(f":{postgres_server.port}/", f":{proxy.port}/")
        store = PostgresStore.open(through, ids=SystemIds(), pool_size=4, application="test")
        exits.push_async_callback(store.close)
        stores = FlakyStores(store)
        world = World(stores)
        exits.push_async_callback(world.close)
        await world.start()
        stores.flaky.before_commit = proxy.drop_server_bytes
        call = asyncio.create_task(world.caller().submit(spec("a")))
        await eventually(lambda: proxy.dropped_bytes > 0)
        stores.flaky.before_commit = lambda: None
        proxy.heal()
        assert len(await call) == 1
        assert stores.flaky.begun == 2
        assert await listed(world) == 1


async def test_hints_do_not_hold_up_commits() -> None:
    class SlowHints(MemoryHints):
        def __init__(self) -> None:
            super().__init__()
            self.go = asyncio.Event()
            self.told: list[str] = []

        async def notify(self, topic: str) -> None:
            self.told.append(topic)
            await self.go.wait()

    hints = SlowHints()
    notifier = Notifier(hints, "a", "b")
    for _ in range(100):
        notifier.ring()
        await settle()
    hints.go.set()
    await notifier.close()
    assert hints.told == ["a", "b", "a", "b"]  # what was rung meanwhile is one more round


class Upkeep:
    """Counts what it is asked for; the first helpings of rows are full ones."""

    def __init__(self, full: int) -> None:
        self.full = full
        self.maintained = 0
        self.pruned = 0

    async def maintain(self) -> None:
        self.maintained += 1

    async def prune(self, keep: Retention, *, limit: int = 1000) -> Pruned:
        assert limit == PRUNE_LIMIT
        self.pruned += 1
        return Pruned(0, limit if self.pruned <= self.full else 3, 0, 0)


class NoJitter(SystemIds):
    def jitter(self) -> float:
        return 0.5


async def test_the_store_is_kept_small() -> None:
    clock = ManualClock()
    upkeep = Upkeep(full=4)
    keeper = Keeper(upkeep, Retention(), clock=clock, ids=NoJitter())
    loops = [asyncio.create_task(keeper.maintain()), asyncio.create_task(keeper.prune())]
    await settle()
    assert (upkeep.maintained, upkeep.pruned) == (1, 5)
    await clock.advance(PRUNE_EVERY_S)
    assert upkeep.maintained == 1 + int(PRUNE_EVERY_S / MAINTAIN_EVERY_S)
    assert upkeep.pruned == 6
    for loop in loops:
        loop.cancel()
