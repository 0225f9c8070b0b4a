"""Dispatch's side of both stores: sessions, what was sent, inventories."""

from dataclasses import replace

import pytest

from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import DEFAULT_SHARD, JobId, NodeId, attempt_id
from atoll.core.model.inventory import ClusterState, Device, LocalUse
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.messages import Decision, DecisionKind
from atoll.core.model.resources import DeviceGrant
from atoll.ports.store.common import Allocation
from atoll.ports.store.dispatch import Beat, InventoryDelta, SessionClaim
from tests.adapters.store_builders import (
    EPOCH,
    NORTH,
    SOUTH,
    claim,
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

SHORT_S = 0.3


async def refusal(store: Store, asked: SessionClaim) -> ErrorCode:
    with pytest.raises(FailedPrecondition) as refused:
        await store.dispatch.open_session(asked)
    return refused.value.code


async def test_a_first_session_registers_its_cluster(world: StoreWorld) -> None:
    row = await world.store.dispatch.open_session(claim())
    cluster = row.cluster
    assert (cluster.session_epoch, cluster.agent_instance, cluster.holder) == (1, "one", "here:1")
    assert (cluster.backend, cluster.can_guard, cluster.levels) == ("simulated", True, ("rack",))
    assert cluster.labels == (("zone", "a"),)
    assert (row.from_snapshot, row.live) == (True, ())
    assert await world.store.submission.clusters() == [cluster]
    assert await world.store.dispatch.address_of(NORTH) == "here:1"
    assert await world.store.dispatch.address_of(SOUTH) is None


async def test_the_same_agent_takes_over_at_once_and_goes_on(world: StoreWorld) -> None:
    await world.store.dispatch.open_session(claim())
    async with world.store.dispatch.begin() as tx:
        assert (await tx.lock_sessions([NORTH, SOUTH]))[NORTH].report_seq == 0
        await tx.set_report_seqs([(NORTH, 9)])
    row = await world.another().dispatch.open_session(claim(holder="there:2"))
    assert (row.cluster.session_epoch, row.cluster.holder) == (2, "there:2")
    assert (row.cluster.report_seq, row.from_snapshot) == (9, False)
    old = Beat(NORTH, 1, applied_seq=0, lease_s=30)
    new = replace(old, session_epoch=2)
    assert list(await world.store.dispatch.beat([old])) == []
    assert list(await world.store.dispatch.beat([new])) == [NORTH]
    assert not await world.store.dispatch.put_inventory(InventoryDelta(NORTH, 1, 5, full=True))
    assert await world.store.dispatch.mark_sent([(NORTH, 1, 1)]) == set()


async def test_another_agent_waits_until_the_lease_is_over(world: StoreWorld) -> None:
    await world.store.dispatch.open_session(claim(lease_s=SHORT_S))
    other = claim(instance="two", fresh_journal=True)
    assert await refusal(world.store, other) is ErrorCode.ALREADY_HELD
    beat = Beat(NORTH, 1, applied_seq=0, lease_s=2 * SHORT_S)
    assert NORTH in await world.store.dispatch.beat([beat])
    await world.pass_time(SHORT_S)
    assert await refusal(world.store, other) is ErrorCode.ALREADY_HELD
    await world.pass_time(1.5 * SHORT_S)
    assert await world.store.dispatch.address_of(NORTH) is None
    row = await world.store.dispatch.open_session(other)
    assert (row.cluster.agent_instance, row.from_snapshot) == ("two", True)


async def test_another_agent_takes_over_after_a_goodbye(world: StoreWorld) -> None:
    await world.store.dispatch.open_session(claim())
    await world.store.dispatch.close_session(NORTH, 7)
    assert await refusal(world.store, claim(instance="two")) is ErrorCode.ALREADY_HELD
    await world.store.dispatch.close_session(NORTH, 1)
    assert list(await world.store.dispatch.beat([Beat(NORTH, 1, 0, lease_s=30)])) == []
    row = await world.store.dispatch.open_session(claim(instance="two"))
    assert (row.cluster.session_epoch, row.cluster.report_seq) == (2, 0)


async def test_a_new_agent_begins_from_what_lives(world: StoreWorld) -> None:
    await cluster_with(world.store, node("n1", gpus=8))
    at = (await node_ids(world.store))["n1"]
    ends, lives, stops = await submit(world.store, 3)
    asked = [placement(each, at) for each in (ends, lives, stops)]
    await place(world.store, await lead(world.store), *asked)
    async with world.store.placement.begin() as tx:
        stop = Decision(NORTH, 4, EPOCH, kind=DecisionKind.STOP, attempt=asked[2].attempt)
        await tx.add_decisions([stop])
    await report(world.store, asked[0].attempt, AttemptEvent.FINISHED, exit_code=0)
    again = await world.store.dispatch.open_session(claim(fresh_journal=True))
    assert again.from_snapshot
    await world.store.dispatch.close_session(NORTH, again.cluster.session_epoch)
    row = await world.store.dispatch.open_session(claim(instance="two"))
    assert row.cluster.head_seq == 4
    assert [(d.number, d.kind, d.attempt) for d in row.live] == [
        (2, DecisionKind.START, asked[1].attempt),
        (3, DecisionKind.START, asked[2].attempt),
        (4, DecisionKind.STOP, asked[2].attempt),
    ]
    assert row.live[0].tasks == asked[1].tasks
    assert (await world.store.dispatch.open_session(claim(instance="two"))).live == ()


async def test_an_agent_that_knows_too_much_is_quarantined(world: StoreWorld) -> None:
    await world.store.dispatch.open_session(claim())
    stranger = claim(instance="two", applied_seq=5)
    assert await refusal(world.store, stranger) is ErrorCode.ALREADY_HELD
    cursor = (await world.store.placement.load(DEFAULT_SHARD)).cursor
    assert await refusal(world.store, claim(applied_seq=5)) is ErrorCode.CLUSTER_QUARANTINED
    [cluster] = await world.store.submission.clusters()
    assert cluster.state is ClusterState.QUARANTINED
    assert await refusal(world.store, claim()) is ErrorCode.CLUSTER_QUARANTINED
    delta = await world.store.placement.catch_up(DEFAULT_SHARD, cursor)
    assert [c.state for c in delta.clusters] == [ClusterState.QUARANTINED]


async def test_a_retired_name_is_never_used_again(world: StoreWorld) -> None:
    await world.store.dispatch.open_session(claim())
    async with world.store.placement.begin() as tx:
        await tx.lock_sessions([NORTH])
        await tx.forget_cluster(NORTH)
    assert await refusal(world.store, claim()) is ErrorCode.CLUSTER_RETIRED


async def test_heartbeats_of_many_sessions_are_committed_together(world: StoreWorld) -> None:
    await world.store.dispatch.open_session(claim())
    await world.store.dispatch.open_session(claim(SOUTH))
    await world.pass_time(0.01)
    before = {c.name: c.last_seen for c in await world.store.submission.clusters()}
    beats = [Beat(SOUTH, 1, 3, lease_s=30), Beat(NORTH, 1, 4, lease_s=30)]
    seen = await world.store.dispatch.beat(beats)
    assert {name: cluster.acked_seq for name, cluster in seen.items()} == {NORTH: 4, SOUTH: 3}
    assert all(cluster.last_seen > before[name] for name, cluster in seen.items())
    lower = [Beat(NORTH, 1, 2, lease_s=30)]
    assert (await world.store.dispatch.beat(lower))[NORTH].acked_seq == 4


async def test_what_was_sent_cannot_be_voided_and_what_was_not_is_not_sent(
    world: StoreWorld,
) -> None:
    await cluster_with(world.store, node("n1", gpus=8))
    at = (await node_ids(world.store))["n1"]
    sent, unsent = await submit(world.store, 2)
    asked = [placement(each, at) for each in (sent, unsent)]
    await place(world.store, await lead(world.store), *asked)
    assert await world.store.dispatch.mark_sent([(NORTH, 1, 1)]) == {NORTH}
    assert await world.store.dispatch.mark_sent([]) == set()
    async with world.store.placement.begin() as tx:
        seen = (await tx.lock_sessions([NORTH]))[NORTH].sent_seq
        rows = await tx.lock_attempts([each.attempt for each in asked])
        free = [number for number, row in rows.items() if row.number > seen]
        await tx.void_decisions(free)
    assert free == [asked[1].attempt]
    found = await world.store.dispatch.decisions_after(NORTH, 0, limit=10)
    assert [(d.kind, d.attempt) for d in found] == [
        (DecisionKind.START, asked[0].attempt), (DecisionKind.VOID, asked[1].attempt),
    ]  # fmt: skip
    assert found[1].tasks == ()
    await report(world.store, asked[0].attempt, AttemptEvent.FINISHED, exit_code=0)
    live = await world.store.dispatch.live_in([
        *(a.attempt for a in asked),
        attempt_id(JobId(9), 1),
    ])
    assert live == {asked[1].attempt}


async def test_only_what_differs_is_written(world: StoreWorld) -> None:
    first, second, third = node("n1", gpus=2), node("n2"), node("n3", address="10.0.0.3")
    row = await cluster_with(world.store, first, second, third)
    epoch = row.cluster.session_epoch
    cursor = (await world.store.placement.load(DEFAULT_SHARD)).cursor
    changed = node("n2", up=False)
    delta = InventoryDelta(NORTH, epoch, 2, full=False, nodes=(first, changed), gone=("n3", "n9"))
    assert await world.store.dispatch.put_inventory(delta)
    assert await world.store.dispatch.inventory(NORTH) == {"n1": first, "n2": changed}
    seen = await world.store.placement.catch_up(DEFAULT_SHARD, cursor)
    assert [(n.inventory.name, n.present, n.revision) for n in seen.nodes] == [
        ("n2", True, 2), ("n3", False, 2),
    ]  # fmt: skip
    assert await world.store.dispatch.put_inventory(replace(delta, nodes=(changed,)))
    again = await world.store.placement.catch_up(DEFAULT_SHARD, seen.cursor)
    assert again.nodes == ()
    older = InventoryDelta(NORTH, epoch, 1, full=True)
    assert await world.store.dispatch.put_inventory(older)
    assert len(await world.store.dispatch.inventory(NORTH)) == 2
    whole = InventoryDelta(NORTH, epoch, 3, full=True, nodes=(third,))
    assert await world.store.dispatch.put_inventory(whole)
    assert await world.store.dispatch.inventory(NORTH) == {"n3": third}
    ids = await node_ids(world.store)
    addresses = await world.store.dispatch.node_addresses([*ids.values(), NodeId(999)])
    assert addresses == {ids["n3"]: "10.0.0.3"}


async def test_a_later_inventory_clears_suspicions_even_of_nodes_it_need_not_list(
    world: StoreWorld,
) -> None:
    row = await cluster_with(world.store, node("n1"), node("n2"))
    at = (await node_ids(world.store))["n1"]
    async with world.store.placement.begin() as tx:
        await tx.suspect_nodes([(at, 1)])

    async def suspects() -> list[str]:
        rows = await world.store.submission.nodes(NORTH, after=("", ""), limit=10)
        return [each.inventory.name for each in rows if each.suspect]

    epoch = row.cluster.session_epoch
    await world.store.dispatch.put_inventory(InventoryDelta(NORTH, epoch, 1, full=False))
    assert await suspects() == ["n1"]
    await world.store.dispatch.put_inventory(InventoryDelta(NORTH, epoch, 2, full=False))
    assert await suspects() == []


async def test_another_agents_inventories_begin_anew(world: StoreWorld) -> None:
    row = await cluster_with(world.store, node("n1"))
    epoch = row.cluster.session_epoch
    later = InventoryDelta(NORTH, epoch, 8, full=True, nodes=(node("n1"),))
    await world.store.dispatch.put_inventory(later)
    at = (await node_ids(world.store))["n1"]
    async with world.store.placement.begin() as tx:
        await tx.suspect_nodes([(at, 8)])
    await world.store.dispatch.close_session(NORTH, epoch)
    row = await world.store.dispatch.open_session(claim(instance="two"))
    assert row.cluster.inventory_number == 0
    [suspect] = await world.store.submission.nodes(NORTH, after=("", ""), limit=10)
    assert suspect.suspect
    whole = InventoryDelta(NORTH, row.cluster.session_epoch, 1, full=True, nodes=(node("n1"),))
    assert await world.store.dispatch.put_inventory(whole)
    [cleared] = await world.store.submission.nodes(NORTH, after=("", ""), limit=10)
    assert cleared.schedulable


async def test_clusters_are_summed_up(world: StoreWorld) -> None:
    broken = Device(1, "H100", memory_bytes=80 << 30, healthy=False)
    mig = Device(0, "A30", memory_bytes=24 << 30, mig=True)
    local = LocalUse(blocks=((0, 30),))
    n1 = replace(node("n1", gpus=1), local_use=local)
    n1 = replace(n1, devices=(*n1.devices, broken))
    n2 = replace(node("n2"), devices=(mig,))
    down = node("n3", gpus=4, up=False)
    await cluster_with(world.store, n1, n2, down)
    await cluster_with(world.store, name=SOUTH)
    ids = await node_ids(world.store)
    [ran] = await submit(world.store)
    wanted = placement(ran, ids["n1"], gpus=[0], blocks=25)
    fence, _ = await place(world.store, await lead(world.store), wanted)
    async with world.store.placement.begin() as tx:
        await tx.require(fence)
        await tx.add_allocations([
            Allocation(wanted.attempt, 1, ids["n2"], device=DeviceGrant(0, slice_mask=0b11)),
            Allocation(wanted.attempt, 1, ids["n3"], device=DeviceGrant(0, blocks=100)),
        ])
    north, south = await world.store.submission.cluster_totals()
    assert (north.nodes, north.nodes_up, north.live_attempts) == (3, 2, 1)
    assert (north.cpu_milli, north.used_cpu_milli) == (3 * 64_000, 1000)
    assert (north.memory_bytes, north.used_memory_bytes) == (3 << 38, 1 << 30)
    assert dict(north.devices) == {"H100": 6, "A30": 1}
    assert dict(north.free_blocks) == {"H100": 100 - 30 - 25, "A30": 50}
    assert (south.cluster.name, south.nodes, dict(south.devices)) == (SOUTH, 0, {})


async def test_a_kind_may_have_any_name(world: StoreWorld) -> None:
    strange = Device(0, 'a"b\\c,{d}', memory_bytes=1)
    await cluster_with(world.store, replace(node("n1"), devices=(strange,)))
    [totals] = await world.store.submission.cluster_totals()
    assert dict(totals.free_blocks) == {'a"b\\c,{d}': 100}


async def test_tasks_that_ended_give_back_what_they_held(world: StoreWorld) -> None:
    store = world.store
    await cluster_with(store, node("n"))
    (at,) = (await node_ids(store)).values()
    (first,) = await submit(store, 1)
    one = placement(first, at, gpus=[0])
    two = one.tasks[0]._replace(rank=1, devices=(DeviceGrant(1, 100),))
    await place(store, await lead(store), one._replace(tasks=(*one.tasks, two)))
    async with store.dispatch.begin() as tx:
        rows = await tx.lock_attempts([one.attempt])
        await tx.set_tasks([replace(rows[one.attempt], tasks=(two,))])
        await tx.set_tasks([])
    held = await store.placement.allocations(DEFAULT_SHARD)
    assert {row.rank for row in held} == {1}
    assert {row.device.index for row in held if row.device is not None} == {1}
    stored = (await store.submission.last_attempts([first.id]))[first.id]
    assert (stored.tasks, stored.revision) == ((two,), rows[one.attempt].revision + 1)
