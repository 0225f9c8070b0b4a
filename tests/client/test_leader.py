"""Finding the placement leader among its replicas."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from atoll.api.common.v1 import common_pb2
from atoll.api.placement.v1 import placement_pb2
from atoll.client.config import ClientConfig
from atoll.core.model.errors import ErrorCode, Unavailable
from tests.client.both import Both, Looping, Waiting
from tests.client.fake import Server
from tests.client.world import World


@pytest.fixture
def leader() -> Iterator[Server]:
    server = Server(World())
    server.world.explanations[1] = placement_pb2.ExplainJobResponse(
        state=common_pb2.JOB_STATE_QUEUED, summary="found"
    )
    yield server
    server.stop()


@pytest.fixture(params=[Waiting, Looping], ids=["sync", "aio"])
def asking(request: pytest.FixtureRequest) -> Iterator[list[Both]]:
    opened: list[Both] = []
    yield opened
    for one in opened:
        one.close()


def opened(
    asking: list[Both], request: pytest.FixtureRequest, config: ClientConfig, *addresses: str
) -> Both:
    kind = Waiting if "sync" in request.node.callspec.id else Looping
    one: Both = kind(replace(config, placement=addresses))
    asking.append(one)
    return one


def test_a_standby_names_the_leader_and_is_asked_no_more(
    asking: list[Both],
    request: pytest.FixtureRequest,
    config: ClientConfig,
    server: Server,
    leader: Server,
) -> None:
    server.world.leader = leader.address
    one = opened(asking, request, config, server.address)
    assert both_summaries(one) == ["found", "found"]
    assert server.world.calls["ExplainJob"] == 1
    assert leader.world.calls["ExplainJob"] == 2


def test_a_dead_replica_is_passed_by(
    asking: list[Both],
    request: pytest.FixtureRequest,
    config: ClientConfig,
    server: Server,
    leader: Server,
) -> None:
    server.stop()
    one = opened(asking, request, config, server.address, leader.address)
    assert both_summaries(one) == ["found", "found"]


def test_a_dead_leader_is_forgotten(
    asking: list[Both],
    request: pytest.FixtureRequest,
    config: ClientConfig,
    server: Server,
    leader: Server,
) -> None:
    server.world.leader = leader.address
    server.world.explanations[1] = leader.world.explanations[1]
    one = opened(asking, request, config, server.address)
    one.do(one.client.explain(1))
    leader.stop()
    server.world.leader = ""
    assert one.do(one.client.explain(1)).summary == "found"


def test_replicas_that_name_each_other_are_not_asked_for_ever(
    asking: list[Both],
    request: pytest.FixtureRequest,
    config: ClientConfig,
    server: Server,
    leader: Server,
) -> None:
    server.world.leader, leader.world.leader = leader.address, server.address
    one = opened(asking, request, config, server.address)
    with pytest.raises(Unavailable) as caught:
        one.do(one.client.explain(1))
    assert caught.value.code is ErrorCode.NOT_LEADER
    assert server.world.calls["ExplainJob"] + leader.world.calls["ExplainJob"] == 5


def test_giving_a_cluster_up_follows_the_leader_but_is_not_repeated(
    asking: list[Both],
    request: pytest.FixtureRequest,
    config: ClientConfig,
    server: Server,
    leader: Server,
) -> None:
    server.world.leader = leader.address
    one = opened(asking, request, config, server.address)
    lost = one.do(one.client.forget_cluster("old", i_have_fenced_it=True))
    assert (lost.attempts_lost, lost.decisions_voided) == (2, 1)
    assert leader.world.forgotten == ["old"]


def test_no_address_of_placement_is_told(
    asking: list[Both], request: pytest.FixtureRequest, config: ClientConfig
) -> None:
    one = opened(asking, request, config)
    with pytest.raises(Unavailable, match="set ATOLL_PLACEMENT"):
        one.do(one.client.explain(1))


def both_summaries(one: Both) -> list[str]:
    return [one.do(one.client.explain(1)).summary for _ in range(2)]
