from typing import Any

from atoll.api.common.v1 import common_pb2 as common
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.core.model.errors import ErrorCode, NotFound
from atoll.core.model.ids import DEFAULT_SHARD, ClusterName
from atoll.core.model.resources import DeviceGrant
from tests.services.submission.worlds import Caller, World, gpu_spec, node, refusal


async def clusters(caller: Caller, **more: Any) -> dict[str, api.Cluster]:
    answer = await caller.ListClusters(api.ListClustersRequest(**more))
    return {cluster.name: cluster for cluster in answer.clusters}


async def nodes(caller: Caller, cluster: str = "", size: int = 0) -> list[api.Node]:
    found: list[api.Node] = []
    page = common.PageRequest(page_size=size)
    while True:
        answer = await caller.ListNodes(api.ListNodesRequest(cluster=cluster, page=page))
        found.extend(answer.nodes)
        page.page_token = answer.next_page_token
        if not page.page_token:
            return found


async def test_clusters_with_their_sums(world: World, ann: Caller) -> None:
    await world.add_cluster("beta", node("n1", gpus=2), node("n2"), can_guard=True)
    await world.add_cluster("alpha")
    found = await clusters(ann)
    assert list(found) == ["alpha", "beta"]
    beta = found["beta"]
    assert (beta.backend, beta.state, beta.can_guard) == ("simulated", "ACTIVE", True)
    assert (beta.nodes, beta.nodes_up, dict(beta.devices)) == (2, 2, {"H100": 2})
    assert dict(beta.free_blocks) == {"H100": 200}
    assert beta.cpu_milli == beta.free_cpu_milli == 128_000


async def test_use_is_shown_by_node_and_device(world: World, ann: Caller) -> None:
    await world.add_cluster("alpha", node("n1", gpus=2))
    (number,) = await ann.submit(gpu_spec(kind="H100", count=1, blocks=100))
    await world.place(number, "alpha", grant=DeviceGrant(index=1, blocks=100))
    (shown,) = await nodes(ann, "alpha")
    assert (shown.used_cpu_milli, shown.used_memory_bytes) == (1_000, 1 << 30)
    assert [(use.index, use.blocks, use.attempt) for use in shown.device_use] == [
        (1, 100, f"{number}.1")
    ]
    alpha = (await clusters(ann))["alpha"]
    assert (alpha.live_attempts, dict(alpha.free_blocks)) == (1, {"H100": 100})
    assert alpha.cpu_milli - alpha.free_cpu_milli == 1_000


async def test_nodes_by_cluster_and_name_over_pages(world: World, ann: Caller) -> None:
    await world.add_cluster("beta", node("n1"), node("n2"), node("n3"))
    await world.add_cluster("alpha", node("n9"))
    shown = [(row.cluster, row.inventory.name) for row in await nodes(ann, size=2)]
    assert shown == [("alpha", "n9"), ("beta", "n1"), ("beta", "n2"), ("beta", "n3")]
    assert [row.inventory.name for row in await nodes(ann, "beta", size=2)] == ["n1", "n2", "n3"]


async def test_a_page_token_belongs_to_its_cluster(world: World, ann: Caller) -> None:
    await world.add_cluster("alpha", node("n1"), node("n2"))
    page = common.PageRequest(page_size=1)
    first = await ann.ListNodes(api.ListNodesRequest(cluster="alpha", page=page))
    page.page_token = first.next_page_token
    found = await refusal(ann.ListNodes(api.ListNodesRequest(cluster="beta", page=page)))
    assert found.code is ErrorCode.BAD_PAGE_TOKEN


async def test_an_unknown_cluster_is_not_found(ann: Caller) -> None:
    found = await refusal(nodes(ann, "nowhere"))
    assert (found.code, found.metadata["cluster"]) == (ErrorCode.CLUSTER_NOT_FOUND, "nowhere")


async def test_a_node_is_cordoned_and_taken_back(world: World, ann: Caller) -> None:
    await world.add_cluster("alpha", node("n1", gpus=1), node("n2", gpus=1))
    before = await world.stores.placement.load(DEFAULT_SHARD)
    await ann.Cordon(api.CordonRequest(cluster="alpha", node="n2", reason="fan"))
    shown = {row.inventory.name: (row.cordoned, row.cordon_reason) for row in await nodes(ann)}
    assert shown == {"n1": (False, ""), "n2": (True, "fan")}
    assert dict((await clusters(ann))["alpha"].free_blocks) == {"H100": 100}
    delta = await world.stores.placement.catch_up(DEFAULT_SHARD, before.cursor)
    assert [(row.inventory.name, row.cordoned) for row in delta.nodes] == [("n2", True)]
    await ann.Uncordon(api.UncordonRequest(cluster="alpha", node="n2"))
    assert not any(row.cordoned for row in await nodes(ann))


async def test_a_closed_cluster_offers_nothing(world: World, ann: Caller) -> None:
    await world.add_cluster("alpha", node("n1", gpus=2))
    await ann.Cordon(api.CordonRequest(cluster="alpha"))
    assert dict((await clusters(ann))["alpha"].free_blocks) == {"H100": 0}
    await ann.Uncordon(api.UncordonRequest(cluster="alpha"))
    assert dict((await clusters(ann))["alpha"].free_blocks) == {"H100": 200}


async def test_a_cluster_is_cordoned_and_taken_back(world: World, ann: Caller) -> None:
    await world.add_cluster("alpha", node("n1"))
    before = await world.stores.placement.load(DEFAULT_SHARD)
    await ann.Cordon(api.CordonRequest(cluster="alpha", reason="upgrade"))
    alpha = (await clusters(ann))["alpha"]
    assert (alpha.cordoned, alpha.cordon_reason) == (True, "upgrade")
    delta = await world.stores.placement.catch_up(DEFAULT_SHARD, before.cursor)
    assert [(row.name, row.cordoned) for row in delta.clusters] == [(ClusterName("alpha"), True)]
    await ann.Uncordon(api.UncordonRequest(cluster="alpha"))
    assert not (await clusters(ann))["alpha"].cordoned


async def test_what_there_is_not_cannot_be_cordoned(world: World, ann: Caller) -> None:
    await world.add_cluster("alpha", node("n1"))
    found = await refusal(ann.Cordon(api.CordonRequest(cluster="nowhere")))
    assert isinstance(found, NotFound)
    assert found.code is ErrorCode.CLUSTER_NOT_FOUND
    found = await refusal(ann.Cordon(api.CordonRequest(cluster="alpha", node="n7")))
    assert found.code is ErrorCode.NODE_NOT_FOUND
    found = await refusal(ann.Uncordon(api.UncordonRequest(cluster="nowhere", node="n1")))
    assert found.code is ErrorCode.NODE_NOT_FOUND


async def test_retired_clusters_are_shown_when_asked_for(world: World, ann: Caller) -> None:
    await world.add_cluster("alpha", node("n1"))
    async with world.stores.placement.begin() as tx:
        await tx.lock_sessions([ClusterName("alpha")])
        await tx.forget_cluster(ClusterName("alpha"))
    assert not await clusters(ann)
    assert (await clusters(ann, include_retired=True))["alpha"].state == "RETIRED"
