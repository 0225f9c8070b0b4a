"""Output of a run comes through the session of its agent, at the pace of its reader."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from atoll.api.agent.v1 import agent_pb2
from atoll.api.agent.v1.agent_pb2_grpc import AgentServiceStub
from atoll.core.model.errors import DomainError, ErrorCode, NotFound, Unavailable
from atoll.core.model.ids import AttemptId
from atoll.wire.errors import error_of_call
from tests.services.dispatch.fake_agent import FakeAgent
from tests.services.dispatch.values import CLUSTER, spec
from tests.services.dispatch.worlds import Running, World, node
from tests.support.waiting import eventually


class Reader:
    """Somebody who reads output, as submission does."""

    def __init__(self, running: Running) -> None:
        self._channel = grpc.aio.insecure_channel(running.address)

    def read(self, attempt: AttemptId, rank: int = 0, **fields: Any) -> AsyncIterator[Any]:
        request = agent_pb2.ReadLogsRequest(
            cluster=CLUSTER, attempt_id=attempt, rank=rank, **fields
        )
        return aiter(AgentServiceStub(self._channel).ReadLogs(request))

    async def all(
        self, attempt: AttemptId, rank: int = 0, **fields: Any
    ) -> list[tuple[int, bytes]]:
        """Until the end; raises how it was refused."""
        try:
            return [(p.rank, p.data) async for p in self.read(attempt, rank, **fields)]
        except grpc.aio.AioRpcError as error:
            raise refusal(error) from error

    async def close(self) -> None:
        await self._channel.close()


def refusal(error: grpc.aio.AioRpcError) -> DomainError:
    metadata = tuple(error.trailing_metadata() or ())
    found = error_of_call(error.code().value[0], error.details() or "", metadata)
    assert found is not None
    return found


async def a_run(world: World, *, tasks: int = 1) -> tuple[FakeAgent, Reader, AttemptId]:
    """An agent with one run, and a reader."""
    running = await world.replica()
    agent = await world.agent(running)
    await agent.open()
    await agent.inventory(1, [node("a"), node("b")])

    async def listed() -> bool:
        return len(await world.nodes()) == 2

    await eventually(listed)
    (decision,) = await world.place(await world.submit(job=spec(tasks=tasks)))
    await eventually(lambda: agent.numbers == [1])
    reader = Reader(running)
    world.exits.push_async_callback(reader.close)
    return agent, reader, decision.attempt


async def test_output_is_relayed_to_its_end(world: World) -> None:
    agent, reader, attempt = await a_run(world)
    reading = asyncio.ensure_future(reader.all(attempt, follow=True, tail_lines=7))
    await eventually(lambda: len(agent.log_requests) == 1)
    asked = agent.log_requests[0]
    assert (asked.attempt_id, asked.rank, asked.follow, asked.tail_lines) == (attempt, 0, True, 7)
    await agent.chunk(asked.request, b"one\n", offset=0)
    await agent.chunk(asked.request, b"two\n", offset=4, end=True)
    assert await reading == [(0, b"one\n"), (0, b"two\n")]
    assert agent.log_cancels == []


async def test_all_ranks_are_asked_one_by_one(world: World) -> None:
    agent, reader, attempt = await a_run(world, tasks=2)
    reading = asyncio.ensure_future(reader.all(attempt, rank=-1))
    await eventually(lambda: len(agent.log_requests) == 2)
    for asked in agent.log_requests:
        await agent.chunk(asked.request, b"rank %d" % asked.rank, end=True)
    assert sorted(await reading) == [(0, b"rank 0"), (1, b"rank 1")]


async def test_a_reader_that_goes_stops_the_agent(world: World) -> None:
    agent, reader, attempt = await a_run(world)
    reading = asyncio.ensure_future(reader.all(attempt, follow=True))
    await eventually(lambda: len(agent.log_requests) == 1)
    reading.cancel()
    await eventually(lambda: agent.log_cancels == [agent.log_requests[0].request])


async def test_a_slow_reader_pauses_the_agent_and_loses_nothing(world: World) -> None:
    agent, reader, attempt = await a_run(world)
    call = reader.read(attempt, follow=True)
    first = asyncio.ensure_future(anext(call))
    await eventually(lambda: len(agent.log_requests) == 1)
    sent, request = 0, agent.log_requests[0].request
    while not agent.log_cancels:
        await agent.chunk(request, bytes(64 << 10), offset=sent)
        sent += 64 << 10
        await asyncio.sleep(0)
        assert sent < 64 << 20, "nobody said stop"
    got = len((await first).data)
    while len(agent.log_requests) == 1:
        got += len((await anext(call)).data)
    resumed = agent.log_requests[1]
    assert 0 < resumed.offset <= sent
    await agent.chunk(resumed.request, b"the end", offset=resumed.offset, end=True)
    async for piece in call:
        got += len(piece.data)
    assert got == resumed.offset + len(b"the end")


async def test_an_agent_that_goes_ends_the_reading(world: World) -> None:
    agent, reader, attempt = await a_run(world)
    reading = asyncio.ensure_future(reader.all(attempt, follow=True))
    await eventually(lambda: len(agent.log_requests) == 1)
    await agent.drop()
    with pytest.raises(Unavailable) as gone:
        await reading
    assert gone.value.code is ErrorCode.AGENT_UNREACHABLE


async def test_another_replica_names_the_one_that_can(world: World) -> None:
    _, _, attempt = await a_run(world)
    holder = (await world.cluster()).holder
    reader = Reader(await world.replica())
    world.exits.push_async_callback(reader.close)
    with pytest.raises(Unavailable) as refused:
        await reader.all(attempt)
    assert refused.value.code is ErrorCode.AGENT_UNREACHABLE
    assert refused.value.metadata == {"holder": holder}


@pytest.mark.parametrize("rank", [0, 9])
async def test_what_does_not_exist_is_not_found(world: World, rank: int) -> None:
    _, reader, attempt = await a_run(world)
    wanted = attempt if rank else AttemptId(attempt + (1 << 16))
    with pytest.raises(NotFound):
        await reader.all(wanted, rank=rank)


async def test_an_agents_error_is_the_readers(world: World) -> None:
    agent, reader, attempt = await a_run(world)
    reading = asyncio.ensure_future(reader.all(attempt))
    await eventually(lambda: len(agent.log_requests) == 1)
    await agent.chunk(agent.log_requests[0].request, b"", error="output was deleted")
    with pytest.raises(NotFound, match="output was deleted"):
        await reading
