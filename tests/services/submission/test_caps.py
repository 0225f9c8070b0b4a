"""Calls that are too big, too deep or no calls at all: refused before they cost anything."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from atoll.adapters.memory.store import MemoryStore
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.core.model.errors import ErrorCode, InvalidInput
from atoll.submission.wiring import GRPC_SERVICE
from tests.services.submission.worlds import Caller, World, refusal, spec

SUBMIT = f"/{GRPC_SERVICE}/SubmitJobs"
UNLIMITED = [("grpc.max_send_message_length", -1)]
START_GROUP, END_GROUP = b"\xfb\x07", b"\xfc\x07"  # of field 127, which no message has


@pytest.fixture
async def world(memory_store: MemoryStore) -> AsyncIterator[World]:
    made = World(memory_store)
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def ann(world: World) -> Caller:
    return world.caller("ann")


async def sent(world: World, data: bytes) -> Any:
    async with grpc.aio.insecure_channel(world.server.address, options=UNLIMITED) as dialled:
        call: Any = dialled.unary_unary(SUBMIT)
        return await call(data)


async def test_64_megabytes(world: World, ann: Caller) -> None:
    big = spec()
    big.groups[0].run = "x" * (64 << 20)
    data = api.SubmitJobsRequest(jobs=[big]).SerializeToString()
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await sent(world, data)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(await ann.submit(spec())) == 1


async def test_many_jobs_that_are_too_big_together(world: World) -> None:
    big = spec()
    big.groups[0].run = "x" * (100 << 10)
    data = api.SubmitJobsRequest(jobs=[big] * 200).SerializeToString()
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await sent(world, data)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("depth", [101, 10_000, 1_000_000])
async def test_depth(world: World, ann: Caller, depth: int) -> None:
    data = START_GROUP * depth + END_GROUP * depth
    assert isinstance(await refusal(sent(world, data)), InvalidInput)
    assert len(await ann.submit(spec())) == 1


async def test_many_bad_calls_at_once_do_not_stop_a_good_one(world: World, ann: Caller) -> None:
    bad = [sent(world, START_GROUP * 10_000) for _ in range(20)]
    outcomes = await asyncio.gather(*bad, ann.submit(spec()), return_exceptions=True)
    assert isinstance(outcomes[-1], list)
    assert all(isinstance(outcome, grpc.aio.AioRpcError) for outcome in outcomes[:-1])


async def test_labels_and_environments_are_bounded(ann: Caller) -> None:
    crowded = spec(labels={f"k{i}": "v" for i in range(65)})
    crowded.groups[0].envs.update({f"K{i}": "v" for i in range(1_025)})
    found = await refusal(ann.submit(crowded))
    assert isinstance(found, InvalidInput)
    assert [violation.field for violation in found.violations] == [
        "jobs[0].groups[0].envs",
        "jobs[0].labels",
    ]


async def test_a_call_of_nothing_but_mistakes_is_answered(ann: Caller) -> None:
    wrong = spec("", labels={f"bad key {i}": "\0" for i in range(100)})
    found = await refusal(ann.submit(*[wrong] * 1_000))
    assert isinstance(found, InvalidInput)
    assert found.code is ErrorCode.INVALID_FIELD
    assert found.metadata["field"] == "jobs[0].name"
