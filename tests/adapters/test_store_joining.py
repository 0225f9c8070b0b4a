import asyncio

import pytest

from atoll.core.model.burst import Instance, InstanceState
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import DEFAULT_SHARD, ClusterName
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.ports.store.dispatch import InventoryDelta
from tests.adapters.burst_builders import TOKEN_HASH, move, rent
from tests.adapters.store_builders import claim, node
from tests.adapters.store_worlds import Store, StoreWorld


async def join(store: Store, each: Instance, **given: object) -> Cluster:
    fields = {"join_hash": TOKEN_HASH, **given}
    return (await store.dispatch.open_session(claim(each.cluster, **fields))).cluster


async def refusal(store: Store, each: Instance, **given: object) -> str:
    with pytest.raises(FailedPrecondition) as refused:
        await join(store, each, **given)
    assert refused.value.code is ErrorCode.JOIN_REFUSED
    return refused.value.message


async def test_a_cluster_is_active_once_its_agent_has_joined(world: StoreWorld) -> None:
    made = await rent(world.store)
    cursor = (await world.store.placement.load(DEFAULT_SHARD)).cursor
    joined = await join(world.store, made)
    assert (joined.state, joined.agent_instance) == (ClusterState.ACTIVE, "one")
    changed = await world.store.placement.catch_up(DEFAULT_SHARD, cursor)
    assert [(c.name, c.state) for c in changed.clusters] == [(made.cluster, ClusterState.ACTIVE)]
    assert [use.joined for use in await world.store.burst.uses()] == [False]
    here = node(made.cluster, gpus=2, cpu_milli=8000)
    delta = InventoryDelta(made.cluster, joined.session_epoch, 1, full=True, nodes=(here,))
    assert await world.store.dispatch.put_inventory(delta)
    assert [use.joined for use in await world.store.burst.uses()] == [True]
    (row,) = await world.store.submission.nodes(made.cluster, after=("", ""), limit=9)
    assert row.inventory == here


async def test_a_token_is_good_for_the_first_agent_alone(world: StoreWorld) -> None:
    made = await rent(world.store)
    first = await join(world.store, made)
    assert (await join(world.store, made)).session_epoch == first.session_epoch + 1
    await world.store.dispatch.close_session(made.cluster, first.session_epoch + 1)
    assert "used by another" in await refusal(world.store, made, instance="two")
    assert (await join(world.store, made)).agent_instance == "one"


async def test_one_of_many_that_show_a_token_at_once_gets_in(world: StoreWorld) -> None:
    made = await rent(world.store)
    tries = [
        join(world.another(), made, instance=f"agent-{number}", lease_s=0.0) for number in range(8)
    ]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(answer, Cluster) for answer in answers) == 1
    assert sum(isinstance(answer, FailedPrecondition) for answer in answers) == 7


@pytest.mark.parametrize("shown", [b"", b"x" * 32])
async def test_another_token_is_refused_and_takes_nothing(world: StoreWorld, shown: bytes) -> None:
    made = await rent(world.store)
    assert "is not the one" in await refusal(world.store, made, join_hash=shown)
    (cluster,) = await world.store.submission.clusters()
    assert (cluster.state, cluster.session_epoch) == (ClusterState.BOOTING, 0)
    await join(world.store, made, instance="another")


@pytest.mark.parametrize(
    "state", [InstanceState.TERMINATING, InstanceState.TERMINATED, InstanceState.FAILED]
)
async def test_who_joins_after_it_was_given_up_is_refused(
    world: StoreWorld, state: InstanceState
) -> None:
    made = await rent(world.store)
    await move(world.store, made, state)
    assert "given up" in await refusal(world.store, made)


async def test_an_agent_that_had_joined_is_refused_once_it_is_given_up(world: StoreWorld) -> None:
    made = await rent(world.store)
    await join(world.store, made)
    for state in (InstanceState.READY, InstanceState.DRAINING):
        await move(world.store, made, state)
        await join(world.store, made)
    await move(world.store, made, InstanceState.TERMINATING)
    assert "given up" in await refusal(world.store, made)


async def test_names_of_rented_clusters_are_nobody_elses(world: StoreWorld) -> None:
    with pytest.raises(FailedPrecondition, match="nothing was rented as burst-7") as refused:
        await world.store.dispatch.open_session(claim(ClusterName("burst-7"), join_hash=TOKEN_HASH))
    assert refused.value.code is ErrorCode.JOIN_REFUSED
    assert await world.store.submission.clusters() == []
    await world.store.dispatch.open_session(claim(ClusterName("burst"), join_hash=b"whatever"))
