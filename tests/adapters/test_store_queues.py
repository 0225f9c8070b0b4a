"""Queues in both stores."""

import asyncio
from dataclasses import replace

from atoll.core.model.ids import QueueName, Tenant
from atoll.core.model.job import Queue
from atoll.core.model.messages import ChangeKind
from atoll.ports.store.common import Change
from tests.adapters.store_builders import QUEUE, TENANT, job, lead
from tests.adapters.store_worlds import StoreWorld


async def test_queues_are_made_changed_listed_and_deleted(world: StoreWorld) -> None:
    wanted = Queue(
        QueueName("b"),
        TENANT,
        "d",
        max_queued_jobs=3,
        weight=2.5,
        deserved=(("A100", 50), ("H100", 800)),
        kind_limits=(("H100", 900),),
        preempts=False,
        created_at=5.0,
    )
    async with world.store.submission.begin() as tx:
        assert await tx.add_queue(wanted)
        assert not await tx.add_queue(replace(wanted, tenant=Tenant("thief")))
        assert await tx.add_queue(Queue(QueueName("a"), TENANT, created_at=6.0))
    async with world.store.submission.begin() as tx:
        locked = await tx.lock_queue(QueueName("b"))
        assert locked == wanted
        await tx.update_queue(replace(wanted, description="new", device_limit=800, generation=2))
        assert await tx.lock_queue(QueueName("none")) is None
    changed = replace(wanted, description="new", device_limit=800, generation=2, revision=2)
    reading = world.store.submission
    assert await reading.get_queue(TENANT, QueueName("b")) == changed
    assert await reading.get_queue(Tenant("other"), QueueName("b")) is None
    assert [q.name for q in await reading.list_queues(TENANT, after="", limit=10)] == ["a", "b"]
    assert [q.name for q in await reading.list_queues(TENANT, after="a", limit=10)] == ["b"]
    async with world.store.submission.begin() as tx:
        await tx.delete_queue(QueueName("b"))
        assert await tx.queues([QueueName("b"), QUEUE]) == {
            QUEUE: await reading.get_queue(Tenant("default"), QUEUE)
        }


async def test_the_queues_of_a_tree_are_read_together(world: StoreWorld) -> None:
    names = ("org", "org.a", "org.a.b", "org-x", "orga", "other")
    async with world.store.submission.begin() as tx:
        for name in names:
            await tx.add_queue(Queue(QueueName(name), TENANT))
    async with world.store.submission.begin() as tx:
        assert [q.name for q in await tx.lock_family(QueueName("org"))] == [*names[:3]]
        assert await tx.lock_family(QueueName("none")) == []


async def test_who_changes_a_tree_sees_what_another_did_meanwhile(world: StoreWorld) -> None:
    async with world.store.submission.begin() as tx:
        await tx.add_queue(Queue(QueueName("org"), TENANT))

    async def add(name: str) -> list[str]:
        async with world.store.submission.begin() as tx:
            family = await tx.lock_family(QueueName("org"))
            await asyncio.sleep(0)
            await tx.add_queue(Queue(QueueName(name), TENANT))
            return [queue.name for queue in family]

    seen = await asyncio.gather(add("org.a"), add("org.b"))
    assert sorted(len(names) for names in seen) == [1, 2]


async def test_the_leader_learns_the_shares_of_queues(world: StoreWorld) -> None:
    fence = await lead(world.store)
    before = await world.store.placement.load(fence.shard)
    shares = Queue(QueueName("a"), TENANT, weight=3.0, deserved=(("H100", 5),), created_at=1.0)
    async with world.store.submission.begin() as tx:
        await tx.add_queue(shares)
        await tx.changed([Change(ChangeKind.QUEUES, names=("a",))])
    delta = await world.store.placement.catch_up(fence.shard, before.cursor)
    assert delta.queues == (shares,)


async def test_a_queue_is_not_deleted_under_a_submit(world: StoreWorld) -> None:
    """The submit holds the queue; whoever deletes it waits, and then sees the job."""
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def submitting() -> None:
        async with world.store.submission.begin() as tx:
            assert QUEUE in await tx.queues([QUEUE])
            entered.set()
            await go_on.wait()
            await tx.add_jobs([job(700)])

    async def live_when_locked() -> int:
        await entered.wait()
        async with world.store.submission.begin() as tx:
            await tx.lock_queue(QUEUE)
            return await tx.live_jobs_in(QUEUE)

    async with asyncio.TaskGroup() as group:
        group.create_task(submitting())
        counting = group.create_task(live_when_locked())
        await entered.wait()
        await asyncio.sleep(0.05)
        assert not counting.done()
        go_on.set()
    assert counting.result() == 1
