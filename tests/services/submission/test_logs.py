import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from atoll.adapters.system import SystemClock, SystemIds
from atoll.api.agent.v1 import agent_pb2, agent_pb2_grpc
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.core.model.errors import (
    DomainError,
    ErrorCode,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    Unavailable,
)
from atoll.core.model.ids import AttemptId, ClusterName
from atoll.runtime.rpc.channel import channel
from atoll.runtime.rpc.server import GrpcServer
from atoll.runtime.settings import ServiceSettings
from atoll.submission.agent_logs import DispatchLogs
from atoll.submission.usecases.logs import LogChunk, LogRead
from tests.services.submission.worlds import Caller, World, attempt_of, node, refusal, spec


async def read(caller: Caller, number: int, rank: int = -1, **more: Any) -> list[tuple[int, bytes]]:
    call = caller.StreamLogs(api.StreamLogsRequest(job_id=number, rank=rank, **more))
    return [(piece.rank, piece.data) async for piece in call]


def unreachable(holder: str) -> Unavailable:
    metadata = {"holder": holder}
    return Unavailable("not here", code=ErrorCode.AGENT_UNREACHABLE, metadata=metadata)


@pytest.fixture
async def number(world: World, ann: Caller) -> int:
    """A job that is placed on cluster alpha."""
    await world.add_cluster("alpha", node(), holder="dispatch:1")
    (submitted,) = await ann.submit(spec())
    await world.place(submitted, "alpha")
    return submitted


async def test_output_is_relayed_from_where_the_agent_is(
    world: World, ann: Caller, number: int
) -> None:
    world.logs.chunks = [LogChunk(0, b"hello ", 0), LogChunk(0, b"\xff\x00", 6)]
    assert await read(ann, number, follow=True, tail_lines=5) == [(0, b"hello "), (0, b"\xff\x00")]
    (asked,) = world.logs.asked
    wanted = LogRead(
        ClusterName("alpha"), attempt_of(number), rank=-1, follow=True, offset=0, tail_lines=5
    )
    assert asked == ("dispatch:1", wanted)


async def test_a_session_that_has_moved_is_followed(world: World, ann: Caller, number: int) -> None:
    world.logs.errors["dispatch:1"] = unreachable("dispatch:2")
    world.logs.chunks = [LogChunk(0, b"there", 0)]
    assert await read(ann, number) == [(0, b"there")]
    assert [holder for holder, _ in world.logs.asked] == ["dispatch:1", "dispatch:2"]


@pytest.mark.parametrize("holder", ["", "dispatch:1"])
async def test_an_agent_that_nobody_reaches_is_told(
    world: World, ann: Caller, number: int, holder: str
) -> None:
    world.logs.errors["dispatch:1"] = unreachable(holder)
    found = await refusal(read(ann, number))
    assert isinstance(found, Unavailable)
    assert found.code is ErrorCode.AGENT_UNREACHABLE


async def test_a_cluster_without_a_session_is_told(world: World, ann: Caller, number: int) -> None:
    (cluster,) = await world.stores.submission.clusters()
    await world.stores.dispatch.close_session(cluster.name, cluster.session_epoch)
    found = await refusal(read(ann, number))
    assert (found.code, found.metadata["cluster"]) == (ErrorCode.AGENT_UNREACHABLE, "alpha")
    assert not world.logs.asked


async def test_a_job_that_was_never_placed_has_no_output(world: World, ann: Caller) -> None:
    (waiting,) = await ann.submit(spec())
    found = await refusal(read(ann, waiting))
    assert isinstance(found, FailedPrecondition)
    assert (found.code, found.metadata["state"]) == (ErrorCode.ATTEMPT_NOT_FOUND, "QUEUED")


@pytest.mark.parametrize("attempt", [2, 65_535, 65_536, (1 << 31) - 1])
async def test_an_attempt_that_was_not_made_is_not_found(
    ann: Caller, number: int, attempt: int
) -> None:
    found = await refusal(read(ann, number, attempt=attempt))
    assert isinstance(found, NotFound)
    assert (found.code, found.metadata["attempts"]) == (ErrorCode.ATTEMPT_NOT_FOUND, "1")


async def test_the_first_attempt_can_be_named(world: World, ann: Caller, number: int) -> None:
    world.logs.chunks = [LogChunk(0, b"x", 0)]
    assert await read(ann, number, attempt=1) == [(0, b"x")]


@pytest.mark.parametrize(
    ("request_fields", "field"),
    [
        ({"rank": 1}, "rank"),
        ({"rank": -2}, "rank"),
        ({"rank": -1, "offset": 5}, "offset"),
        ({"rank": 0, "offset": -1}, "offset"),
        ({"rank": 0, "tail_lines": -1}, "tail_lines"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    ann: Caller, number: int, request_fields: dict[str, int], field: str
) -> None:
    found = await refusal(read(ann, number, **request_fields))
    assert isinstance(found, InvalidInput)
    assert found.violations[0].field == field


async def test_other_tenants_read_nothing(world: World, number: int) -> None:
    found = await refusal(read(world.caller("bob", "lab"), number))
    assert found.code is ErrorCode.JOB_NOT_FOUND


class Dispatch(agent_pb2_grpc.AgentServiceServicer):
    """A dispatch replica with one run's output."""

    def __init__(self, error: DomainError | None = None) -> None:
        self.error = error
        self.asked: list[agent_pb2.ReadLogsRequest] = []

    async def ReadLogs(  # noqa: N802
        self, request: agent_pb2.ReadLogsRequest, context: Any
    ) -> AsyncIterator[agent_pb2.ReadLogsResponse]:
        self.asked.append(request)
        yield agent_pb2.ReadLogsResponse(rank=2, data=b"abc", offset=request.offset)
        if self.error is not None:
            raise self.error


WANTED = LogRead(ClusterName("alpha"), AttemptId(65_537), 2, follow=True, offset=7, tail_lines=3)
SETTINGS = ServiceSettings(drain_s=0)


async def dispatch_server(servicer: Any) -> GrpcServer:
    add = agent_pb2_grpc.add_AgentServiceServicer_to_server
    services = {"atoll.api.agent.v1.AgentService": lambda server: add(servicer, server)}
    server = GrpcServer(SETTINGS, services, clock=SystemClock(), ids=SystemIds())
    await server.start()
    return server


def source() -> DispatchLogs:
    return DispatchLogs(lambda address: channel(address, SETTINGS))


async def test_the_request_reaches_dispatch_as_it_is_meant() -> None:
    make: Any = Dispatch
    servicer = make()
    server = await dispatch_server(servicer)
    logs = source()
    found = [chunk async for chunk in logs.read(server.address, WANTED)]
    assert found == [LogChunk(2, b"abc", 7)]
    (asked,) = servicer.asked
    assert (asked.cluster, asked.attempt_id, asked.rank) == ("alpha", 65_537, 2)
    assert (asked.follow, asked.offset, asked.tail_lines) == (True, 7, 3)
    await logs.close()
    await server.drain()


async def test_a_refusal_of_dispatch_is_handed_on() -> None:
    make: Any = Dispatch
    server = await dispatch_server(make(unreachable("dispatch:2")))
    logs = source()
    with pytest.raises(Unavailable) as raised:
        _ = [chunk async for chunk in logs.read(server.address, WANTED)]
    assert raised.value.metadata["holder"] == "dispatch:2"
    await logs.close()
    await server.drain()


async def test_a_dispatch_that_has_gone_is_an_unreachable_agent() -> None:
    logs = source()
    with pytest.raises(Unavailable) as raised:
        _ = [chunk async for chunk in logs.read("127.0.0.1:1", WANTED)]
    assert raised.value.code is ErrorCode.AGENT_UNREACHABLE
    await logs.close()


async def test_closing_ends_what_is_being_read() -> None:
    class Endless(Dispatch):
        async def ReadLogs(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
            while True:
                yield agent_pb2.ReadLogsResponse(rank=2, data=b"x")
                await asyncio.sleep(0.01)

    make: Any = Endless
    server = await dispatch_server(make())
    logs = source()
    chunks = logs.read(server.address, WANTED)
    await anext(chunks)
    await logs.close()
    with pytest.raises(Unavailable):
        _ = [chunk async for chunk in chunks]
    await server.drain()
