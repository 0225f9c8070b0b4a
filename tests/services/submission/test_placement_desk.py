"""Asking for promises over gRPC: the leader is found, and remembered; nobody is no catastrophe."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from atoll.adapters.memory.registry import MemoryRegistry
from atoll.api.common.v1 import common_pb2
from atoll.core.model.deadline import Chance, Verdict
from atoll.core.model.errors import Unavailable
from atoll.core.model.ids import DEFAULT_SHARD, ClusterName, JobId
from atoll.core.model.spec import JobSpec
from atoll.runtime.rpc.channel import channel
from atoll.runtime.settings import ServiceSettings
from atoll.submission.placement_desk import PLACEMENT, PlacementDesk
from tests.client.fake import Server
from tests.client.world import World

SPEC = JobSpec(name="a", queue="q", groups=(), deadline_at=2e9)
YES = common_pb2.DeadlineAnswer(
    chance=common_pb2.DEADLINE_CHANCE_GUARANTEED, earliest_at=1e9, cluster="north"
)


@contextmanager
def replica(*, leads: bool) -> Iterator[Server]:
    world = World(deadlines=[YES], leader="" if leads else "elsewhere:1")
    server = Server(world)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


@pytest.fixture
async def desk(registry: MemoryRegistry) -> AsyncIterator[PlacementDesk]:
    made = PlacementDesk(registry, lambda address: channel(address, ServiceSettings()))
    yield made
    await made.close()


async def ask(desk: PlacementDesk, spec: JobSpec = SPEC, *, waits: bool = False) -> list[Verdict]:
    return await desk.answers(DEFAULT_SHARD, [spec], waits=[waits], keep=True)


async def test_the_leader_is_found_among_the_replicas_and_asked_first_from_then_on(
    desk: PlacementDesk, registry: MemoryRegistry
) -> None:
    with replica(leads=False) as standby, replica(leads=True) as leader:
        await registry.register(PLACEMENT, "a", address=standby.address, ttl_s=9)
        await registry.register(PLACEMENT, "b", address=leader.address, ttl_s=9)
        for _ in range(2):
            want = Verdict(Chance.GUARANTEED, 1e9, ClusterName("north"))
            assert await ask(desk) == [want]
        assert standby.world.calls["AdmitDeadlines"] == 1
        assert leader.world.calls["AdmitDeadlines"] == 2


async def test_a_new_leader_is_found_when_the_old_one_has_gone(
    desk: PlacementDesk, registry: MemoryRegistry
) -> None:
    with replica(leads=True) as later:
        with replica(leads=True) as first:
            await registry.register(PLACEMENT, "a", address=first.address, ttl_s=9)
            await ask(desk)
        await registry.register(PLACEMENT, "b", address=later.address, ttl_s=9)
        assert len(await ask(desk)) == 1
        assert later.world.calls["AdmitDeadlines"] == 1


async def test_without_anybody_to_ask_it_is_unavailable(
    desk: PlacementDesk, registry: MemoryRegistry
) -> None:
    with pytest.raises(Unavailable):
        await ask(desk)
    with replica(leads=False) as standby:
        await registry.register(PLACEMENT, "a", address=standby.address, ttl_s=9)
        with pytest.raises(Unavailable, match="does not lead"):
            await ask(desk)


async def test_a_job_that_waits_for_others_is_sent_as_one_that_does(
    desk: PlacementDesk, registry: MemoryRegistry
) -> None:
    with replica(leads=True) as leader:
        await registry.register(PLACEMENT, "a", address=leader.address, ttl_s=9)
        await ask(desk, waits=True)
        await ask(desk, JobSpec(name="b", queue="q", groups=(), depends_on=(JobId(3),)))
        sent = [len(request.jobs[0].depends_on) for request in leader.world.asked]
        assert sent == [1, 1]
