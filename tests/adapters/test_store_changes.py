"""How a leader learns what is, and what changed, from both stores."""

from dataclasses import replace

import pytest

from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import (
    DEFAULT_SHARD,
    JobId,
    QueueName,
    ShardId,
)
from atoll.core.model.inventory import Avoidance
from atoll.core.model.job import Queue
from atoll.core.model.lifecycle import AttemptEvent, AttemptState, JobState
from atoll.core.model.messages import ChangeKind
from atoll.core.model.plan import request_of, shape_key
from atoll.core.model.reason import ReasonCode
from atoll.ports.store.common import Change
from tests.adapters.store_builders import (
    NORTH,
    TENANT,
    cluster_with,
    lead,
    node,
    node_ids,
    place,
    placement,
    report,
    spec,
    submit,
)
from tests.adapters.store_worlds import StoreWorld


async def test_a_leader_loads_what_lives(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=8), node("n2"))
    at = (await node_ids(world.store))["n1"]
    waits, runs, done = await submit(world.store, 3, spec=spec(depends_on=(JobId(77),)))
    fence, _ = await place(world.store, await lead(world.store), placement(runs, at, gpus=[1]))
    async with world.store.submission.begin() as tx:
        await tx.update_jobs([replace(done, state=JobState.CANCELLED, ended_at=1.0)])
    avoided = Avoidance(NORTH, None, "k", 2, until=9e9)
    async with world.store.placement.begin() as tx:
        await tx.require(fence)
        await tx.put_avoidances([avoided, Avoidance(NORTH, at, "", 1, until=9e9)])
        await tx.put_avoidances([Avoidance(NORTH, at, "", 3, until=1.0)])
    delta = await world.another().placement.load(DEFAULT_SHARD)
    assert [(view.pending.id, view.state) for view in delta.jobs] == [
        (waits.id, JobState.QUEUED), (runs.id, JobState.ASSIGNED),
    ]  # fmt: skip
    assert delta.jobs[0].pending.request == request_of(waits.spec)
    assert delta.jobs[0].pending.depends_on == (77,)
    [view] = delta.attempts
    assert (view.attempt.id, view.queue) == (placement(runs, at).attempt, "default")
    assert view.shape_key == shape_key(request_of(runs.spec))
    assert {n.inventory.name for n in delta.nodes} == {"n1", "n2"}
    assert [cluster.name for cluster in delta.clusters] == [NORTH]
    assert [queue.name for queue in delta.queues] == ["default"]
    assert delta.avoidances == (avoided,)


async def test_a_follower_sees_what_others_changed_and_not_its_own(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=8))
    at = (await node_ids(world.store))["n1"]
    leader, other = world.store.placement, world.another()
    cursor = (await leader.load(DEFAULT_SHARD)).cursor
    quiet = await leader.catch_up(DEFAULT_SHARD, cursor)
    assert (quiet.jobs, quiet.attempts, quiet.nodes, quiet.clusters) == ((), (), (), ())
    [mine] = await submit(other)
    seen = await leader.catch_up(DEFAULT_SHARD, quiet.cursor)
    assert [view.pending.id for view in seen.jobs] == [mine.id]
    await place(world.store, await lead(world.store), placement(mine, at))
    own = await leader.catch_up(DEFAULT_SHARD, seen.cursor)
    assert (own.jobs, own.attempts) == ((), ())
    standby = await other.placement.catch_up(DEFAULT_SHARD, seen.cursor)
    assert [view.attempt.id for view in standby.attempts] == [placement(mine, at).attempt]
    assert (await leader.catch_up(ShardId(5), cursor)).jobs == ()


async def test_what_the_writer_wants_echoed_it_sees(world: StoreWorld) -> None:
    [mine] = await submit(world.store)
    cursor = (await world.store.placement.load(DEFAULT_SHARD)).cursor
    async with world.store.placement.begin() as tx:
        await tx.changed([
            Change(ChangeKind.JOBS, ids=(mine.id,), echo=True),
            Change(ChangeKind.CLUSTERS),
        ])
    seen = await world.store.placement.catch_up(DEFAULT_SHARD, cursor)
    assert [view.pending.id for view in seen.jobs] == [mine.id]


async def test_ended_jobs_and_refusals_are_shown_once(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=8))
    at = (await node_ids(world.store))["n1"]
    ends, refused = await submit(world.store, 2)
    asked = [placement(ends, at), placement(refused, at)]
    await place(world.store, await lead(world.store), *asked)
    cursor = (await world.store.placement.load(DEFAULT_SHARD)).cursor
    await report(world.store, asked[0].attempt, AttemptEvent.FINISHED, exit_code=0)
    await report(
        world.store, asked[1].attempt, AttemptEvent.REJECTED, reason=ReasonCode.CAPACITY_TAKEN,
        suspects=(at,), inventory_number=1,
    )  # fmt: skip
    delta = await world.store.placement.catch_up(DEFAULT_SHARD, cursor)
    assert [view.state for view in delta.jobs] == [JobState.SUCCEEDED, JobState.QUEUED]
    assert [view.attempt.state for view in delta.attempts] == [
        AttemptState.FINISHED, AttemptState.REJECTED,
    ]  # fmt: skip
    assert (delta.attempts[1].suspects, delta.attempts[1].rejected_inventory) == ((at,), 1)
    assert await world.store.placement.allocations(DEFAULT_SHARD) == []
    after = await world.store.placement.catch_up(DEFAULT_SHARD, delta.cursor)
    assert (after.jobs, after.attempts) == ((), ())


async def test_queues_come_and_go_in_the_leaders_sight(world: StoreWorld) -> None:
    cursor = (await world.store.placement.load(DEFAULT_SHARD)).cursor
    name = QueueName("a")
    async with world.store.submission.begin() as tx:
        await tx.add_queue(Queue(name, TENANT))
        await tx.changed([Change(ChangeKind.QUEUES, names=(name,))])
    came = await world.store.placement.catch_up(DEFAULT_SHARD, cursor)
    assert [queue.name for queue in came.queues] == [name]
    async with world.store.submission.begin() as tx:
        await tx.lock_queue(name)
        await tx.delete_queue(name)
        await tx.changed([Change(ChangeKind.QUEUES, names=(name,))])
    gone = await world.store.placement.catch_up(DEFAULT_SHARD, came.cursor)
    assert (gone.queues, gone.queues_gone) == ((), ("a",))


async def test_a_cursor_of_another_database_is_refused(world: StoreWorld) -> None:
    cursor = (await world.store.placement.load(DEFAULT_SHARD)).cursor
    for text in ("", "nonsense", cursor.text.replace("/", "/9", 2)):
        with pytest.raises(FailedPrecondition) as refused:
            await world.store.placement.catch_up(DEFAULT_SHARD, replace(cursor, text=text))
        assert refused.value.code is ErrorCode.CURSOR_EXPIRED
