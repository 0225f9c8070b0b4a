"""Placement's side of both stores: the fence, commits, and learning of change."""

import asyncio
from dataclasses import replace

import pytest

from atoll.core.model.errors import ErrorCode, FailedPrecondition, StaleEpoch
from atoll.core.model.ids import (
    DEFAULT_SHARD,
    AttemptId,
    ClusterName,
    Epoch,
    JobId,
    NodeId,
    ShardId,
    attempt_id,
)
from atoll.core.model.inventory import ClusterState
from atoll.core.model.lifecycle import AttemptEvent, JobState, JobWish
from atoll.core.model.messages import Decision, DecisionKind
from atoll.ports.store.common import Fence, StoreUnavailable
from tests.adapters.store_builders import (
    EPOCH,
    NORTH,
    TENANT,
    allocations,
    attempt,
    cluster_with,
    lead,
    node,
    node_ids,
    place,
    placement,
    report,
    submit,
)
from tests.adapters.store_worlds import Store, StoreWorld


async def fleet(store: Store, **nodes: int) -> dict[str, NodeId]:
    await cluster_with(store, *(node(name, gpus=gpus) for name, gpus in nodes.items()))
    return await node_ids(store)


async def test_a_newer_epoch_deposes_an_older_leader(world: StoreWorld) -> None:
    await fleet(world.store)
    old = await lead(world.store)
    newer = await lead(world.another(), Epoch(1, 11))
    assert (newer.epoch, newer.commit_seq) == (Epoch(1, 11), old.commit_seq)
    with pytest.raises(StaleEpoch):
        await place(world.store, old)
    with pytest.raises(StaleEpoch):
        await lead(world.store)
    assert await world.store.placement.read_fence(DEFAULT_SHARD) == newer
    assert await lead(world.store, Epoch(2, 1)) == replace(newer, epoch=Epoch(2, 1))


async def test_another_shard_has_a_fence_of_its_own(world: StoreWorld) -> None:
    await lead(world.store, Epoch(9, 9))
    with pytest.raises(StaleEpoch):
        await world.store.placement.read_fence(ShardId(4))
    fence = await world.store.placement.take_over(ShardId(4), EPOCH)
    assert fence == Fence(ShardId(4), EPOCH, commit_seq=0)


async def test_every_commit_needs_the_fence_of_the_one_before(world: StoreWorld) -> None:
    await fleet(world.store)
    first = await lead(world.store)
    second, _ = await place(world.store, first)
    assert second.commit_seq == first.commit_seq + 1
    with pytest.raises(StaleEpoch):
        await place(world.store, first)
    with pytest.raises(StaleEpoch):
        await place(world.store, replace(second, booking_rev=1))
    third, _ = await place(world.store, second)
    assert await world.store.placement.read_fence(DEFAULT_SHARD) == third


async def test_a_placement_is_written_whole(world: StoreWorld) -> None:
    at = (await fleet(world.store, n1=8))["n1"]
    [waiting] = await submit(world.store, accepted_at=5.0, started_at=6.0, exit_code=1)
    wanted = placement(waiting, at, gpus=[0, 3])
    _, won = await place(world.store, await lead(world.store), wanted)
    assert won == {waiting.id}
    placed = await world.store.submission.get_job(TENANT, waiting.id)
    assert placed is not None
    assert placed == replace(
        waiting,
        state=JobState.ASSIGNED,
        attempt=wanted.attempt,
        attempts=1,
        cluster=NORTH,
        placed_at=placed.placed_at,
        accepted_at=0.0,
        started_at=0.0,
        exit_code=None,
        revision=2,
    )
    assert placed.placed_at > 0
    rows = await world.store.placement.allocations(DEFAULT_SHARD)
    assert rows == await world.store.submission.allocations([at])
    assert [row.device for row in rows] == [None, *wanted.tasks[0].devices]
    [decision] = await world.store.dispatch.decisions_after(NORTH, 0, limit=10)
    assert (decision.kind, decision.number, decision.tasks) == (
        DecisionKind.START, 1, wanted.tasks,
    )  # fmt: skip
    [cluster] = await world.store.submission.clusters()
    assert cluster.head_seq == 1


async def test_who_changed_since_the_snapshot_loses_and_the_rest_stands(world: StoreWorld) -> None:
    at = (await fleet(world.store, n1=8))["n1"]
    fresh, changed, cancelled, held = await submit(world.store, 4)
    async with world.store.submission.begin() as tx:
        await tx.update_jobs([
            replace(changed, priority=5),
            replace(cancelled, wish=JobWish.CANCEL),
            replace(held, state=JobState.HELD),
        ])
    asked = [
        placement(fresh, at),
        placement(changed, at),
        placement(replace(cancelled, revision=2), at),
        placement(replace(held, revision=2), at),
        placement(replace(fresh, id=JobId(999)), at),
    ]
    _, won = await place(world.store, await lead(world.store), *asked)
    assert won == {fresh.id}


async def test_a_whole_device_has_one_owner(world: StoreWorld) -> None:
    at = (await fleet(world.store, n1=8))["n1"]
    first, second, third = await submit(world.store, 3)
    fence, _ = await place(world.store, await lead(world.store), placement(first, at, gpus=[2]))
    with pytest.raises(FailedPrecondition) as refused:
        await place(world.store, fence, placement(second, at, gpus=[2]))
    assert refused.value.code is ErrorCode.PLAN_INVALID
    assert await world.store.placement.read_fence(DEFAULT_SHARD) == fence
    found = await world.store.submission.get_job(TENANT, second.id)
    assert found is not None
    assert found.state is JobState.QUEUED
    # Shares are the ledger's business.
    fence, _ = await place(world.store, fence, placement(second, at, gpus=[3], blocks=50))
    fence, _ = await place(world.store, fence, placement(third, at, gpus=[3], blocks=50))
    ended = placement(first, at).attempt
    await report(world.store, ended, AttemptEvent.FINISHED, exit_code=0)
    [again] = await submit(world.store)
    _, won = await place(world.store, fence, placement(again, at, gpus=[2]))
    assert won == {again.id}


async def test_a_refusal_that_is_swallowed_still_commits_nothing(world: StoreWorld) -> None:
    at = (await fleet(world.store, n1=8))["n1"]
    first, second = await submit(world.store, 2)
    fence, _ = await place(world.store, await lead(world.store), placement(first, at, gpus=[2]))

    async def swallowing() -> None:
        async with world.store.placement.begin() as tx:
            await tx.require(fence)
            await tx.place_jobs([placement(second, at)])
            with pytest.raises(FailedPrecondition):
                await tx.add_allocations(allocations(attempt(placement(second, at, gpus=[2]), 2)))

    with pytest.raises(StoreUnavailable):
        await swallowing()
    assert await world.store.placement.job_states([second.id, JobId(999)]) == {
        second.id: JobState.QUEUED
    }


def stop(number: int, cluster: ClusterName = NORTH) -> Decision:
    return Decision(cluster, number, EPOCH, kind=DecisionKind.STOP, attempt=placement_of(number))


def placement_of(number: int) -> AttemptId:
    return attempt_id(JobId(number), 1)


@pytest.mark.parametrize("numbers", [(2,), (1, 3), (0,), (1, 1)])
async def test_decision_numbers_are_dense(world: StoreWorld, numbers: tuple[int, ...]) -> None:
    await fleet(world.store)

    async def adding() -> None:
        async with world.store.placement.begin() as tx:
            await tx.add_decisions([stop(number) for number in numbers])

    with pytest.raises(FailedPrecondition):
        await adding()
    assert await world.store.dispatch.decisions_after(NORTH, 0, limit=10) == []


async def test_numbers_stay_dense_under_concurrent_commits(world: StoreWorld) -> None:
    await fleet(world.store)

    async def decide() -> None:
        async with world.store.placement.begin() as tx:
            head = (await tx.lock_clusters([NORTH]))[NORTH].head_seq
            await tx.add_decisions([stop(head + 1), stop(head + 2)])

    await asyncio.gather(*(decide() for _ in range(10)))
    found = await world.store.dispatch.decisions_after(NORTH, 0, limit=100)
    assert [decision.number for decision in found] == list(range(1, 21))
    assert [d.number for d in await world.store.dispatch.decisions_after(NORTH, 7, limit=3)] == [
        8, 9, 10,
    ]  # fmt: skip


async def test_a_suspect_waits_for_a_later_inventory(world: StoreWorld) -> None:
    at = (await fleet(world.store, n1=8))["n1"]
    fence = await lead(world.store)
    async with world.store.placement.begin() as tx:
        await tx.require(fence)
        await tx.suspect_nodes([(at, 1), (NodeId(999), 4)])
        await tx.suspect_nodes([])
    [suspect] = await world.store.submission.nodes(NORTH, after=("", ""), limit=10)
    assert (suspect.suspect, suspect.revision) == (True, 2)


async def test_a_cluster_that_is_forgotten_is_retired(world: StoreWorld) -> None:
    at = (await fleet(world.store, n1=8))["n1"]
    sent, unsent = await submit(world.store, 2)
    asked = [placement(sent, at), placement(unsent, at)]
    fence, _ = await place(world.store, await lead(world.store), *asked)
    assert await world.store.dispatch.mark_sent([(NORTH, 1, 1)]) == {NORTH}
    async with world.store.placement.begin() as tx:
        await tx.require(fence)
        assert (await tx.lock_sessions([NORTH]))[NORTH].sent_seq == 1
        assert await tx.clusters_of([asked[0].attempt, placement_of(999)]) == {
            asked[0].attempt: NORTH
        }
        attempts = await tx.forget_cluster(NORTH)
    assert attempts == [each.attempt for each in asked]
    decisions = await world.store.dispatch.decisions_after(NORTH, 0, limit=10)
    assert [decision.kind for decision in decisions] == [DecisionKind.START, DecisionKind.VOID]
    [cluster] = await world.store.submission.clusters()
    assert (cluster.state, cluster.holder) == (ClusterState.RETIRED, "")
    assert await world.store.dispatch.mark_sent([(NORTH, 1, 2)]) == set()
    assert await world.store.submission.nodes("", after=("", ""), limit=10) == []


async def test_silence_and_state_are_kept(world: StoreWorld) -> None:
    await fleet(world.store)
    fence = await lead(world.store)
    async with world.store.placement.begin() as tx:
        await tx.require(fence)
        await tx.set_silence([(NORTH, 12.5)])
        await tx.set_cluster_state(NORTH, ClusterState.SILENT)
    [cluster] = await world.store.placement.heartbeats(DEFAULT_SHARD)
    assert (cluster.silent_s, cluster.state) == (12.5, ClusterState.SILENT)
    assert cluster.last_seen > 0
    assert await world.store.placement.heartbeats(ShardId(3)) == []


async def test_what_is_known_of_sizes_and_guarantees_is_kept(world: StoreWorld) -> None:
    ids = await fleet(world.store, a=2)
    (one,) = await submit(world.store, guaranteed=True)
    fence, _ = await place(world.store, await lead(world.store), placement(one, ids["a"], gpus=[0]))
    number = attempt_id(one.id, 1)
    async with world.store.placement.begin() as tx:
        await tx.require(fence)
        jobs, rows = await tx.lock_jobs([one.id]), await tx.lock_attempts([number])
        assert jobs[one.id].guaranteed
        await tx.update_jobs([replace(jobs[one.id], guaranteed=False)])
        sized = replace(rows[number], generation=1, changed_at=5.5, done=7.25)
        await tx.update_attempts([sized])
    (view,) = (await world.another().placement.load(DEFAULT_SHARD)).attempts
    assert view.run is not None
    assert not view.run.guaranteed
    found = view.attempt
    assert (found.generation, found.resized) == (1, 0)
    assert (found.changed_at, found.done) == (5.5, 7.25)
