"""Renting over real servers: real agents join, take work, and are gone in the end."""

import os
from pathlib import Path
from typing import Any

import grpc

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.api.burst.v1 import burst_pb2_grpc
from tests.e2e.load import job, quiet, value
from tests.e2e.stack import Stack
from tests.support.waiting import eventually

SMALL = {"cpu": 2, "memory_gib": 4, "kind": "H100", "devices": 1, "on_demand": 1, "spot": None}
PROVIDERS = {
    "process": {
        "types": {"small": SMALL},
        "zones": {"here": {"most": 2}},
        "ends_with": os.getpid(),
    }
}
QUICKLY = {
    "ATOLL_POLICY_ALLOWED": "true",
    "ATOLL_POLICY_PER_HOUR": "2",
    "ATOLL_POLICY_HOUR_OF_DELAY": "100000",
    "ATOLL_INSTANCE_DRAIN_S": "1",
    "ATOLL_INSTANCE_GRACE_S": "1",
    "ATOLL_DECIDE_PERIOD_S": "0.5",
    "ATOLL_REAPER_PERIOD_S": "1",
    "ATOLL_SPEND_PERIOD_S": "1",
    "ATOLL_FORECAST_PERIOD_S": "1",
    "ATOLL_FORECAST_STEP_S": "1",
}


async def test_a_broker_killed_at_each_step_rents_once_and_leaves_nothing(stack: Stack) -> None:
    await stack.start(("alpha",))
    first = stack.add_broker(PROVIDERS, **QUICKLY)
    first.start(ATOLL_FAILPOINT="burst.created:kill")
    await first.wait_ready()
    async with grpc.aio.insecure_channel(first.address) as channel:
        stub: Any = burst_pb2_grpc.BurstServiceStub(channel)
        await eventually(lambda: offered(stub))
        await stub.RequestCapacity(pb.RequestCapacityRequest(kind="H100", count=1, keep_s=600))
    first.wait_killed(120)
    assert len(folders(stack)) == 1
    second = stack.add_broker(PROVIDERS, **QUICKLY)
    second.start(ATOLL_FAILPOINT="burst.told_to_end:kill")
    await second.wait_ready()
    await eventually(lambda: is_in(stack, "READY"))
    assert len(folders(stack)) == 1
    async with stack.client() as client:
        await client.submit([job(f"full-{n}", gpus="H100:8", seconds=600) for n in range(8)])
        more = await client.submit(job("more", gpus="H100:1"))
        await quiet(stack, [more.id])
    ran = await value(stack, "SELECT cluster FROM jobs WHERE id = $1", more.id)
    assert ran == "burst-1"
    async with grpc.aio.insecure_channel(second.address) as channel:
        stub = burst_pb2_grpc.BurstServiceStub(channel)
        await eventually(lambda: is_foreseen(stub))
        await stub.ReleaseCapacity(pb.ReleaseCapacityRequest(all=True, now=True))
    second.wait_killed(120)
    assert await is_in(stack, "TERMINATING")
    third = stack.add_broker(PROVIDERS, **QUICKLY)
    third.start()
    await third.wait_ready()
    await eventually(lambda: is_in(stack, "TERMINATED"))
    (folder,) = folders(stack)
    assert (folder / "gone").exists()


def folders(stack: Stack) -> list[Path]:
    """Of all that was ever created."""
    root = stack.folder / "burst" / "process"
    return [each for each in root.iterdir() if (each / "order.json").exists()]


async def offered(stub: Any) -> bool:
    """Whether anything can be rented, and the leader has written the policy."""
    return len((await stub.ListOffers(pb.ListOffersRequest())).offers) > 0


async def is_foreseen(stub: Any) -> bool:
    """Whether the forecast has seen that all of the cluster's devices are in use."""
    answer = await stub.GetForecast(pb.GetForecastRequest(kind="H100"))
    return any(max(each.actual) >= 64 and len(each.quantiles) == 7 for each in answer.series)


async def is_in(stack: Stack, state: str, number: int = 1) -> bool:
    """Whether an instance is in a state."""
    found = await value(stack, "SELECT state::text FROM burst_instances WHERE id = $1", number)
    return bool(found == state)
