"""The service as a process of its own, over real PostgreSQL, Valkey and etcd."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc

from atoll.adapters.etcd.connection import EtcdConnection
from atoll.adapters.etcd.registry import EtcdRegistry
from atoll.adapters.redis_streams import RedisHints
from atoll.adapters.system import SystemClock
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.api.submission.v1 import submission_pb2_grpc as api_grpc
from atoll.core.model.errors import ErrorCode
from atoll.ports.topics import PLACEMENT
from tests.services.submission.worlds import Caller, refusal, spec
from tests.support.servers import PostgresLike, ValkeyLike
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[3]
WITHIN_S = 90


@asynccontextmanager
async def service(**settings: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, Caller]]:
    """The process, and a way to call it."""
    told = {f"ATOLL_{name.upper()}": value for name, value in settings.items()}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "atoll.submission", "--listen=127.0.0.1:0",
        "--metrics-listen=127.0.0.1:0", "--drain-s=5",
        cwd=ROOT, env={**os.environ, **told}, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        address = await _address(process)
        rest = asyncio.create_task(_drop(process))
        async with grpc.aio.insecure_channel(address) as dialled:
            yield process, Caller(api_grpc.SubmissionServiceStub(dialled))
        rest.cancel()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(WITHIN_S):
        async for raw in process.stderr:
            line: dict[str, Any] = json.loads(raw)
            if line["event"] == "serving":
                return str(line["address"])
    raise AssertionError("the service ended before it served")


async def _drop(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    async for _ in process.stderr:
        pass


async def test_it_registers_hints_and_leaves_in_order(
    store_dsn: str,
    valkey_url: str,
    etcd_endpoints: tuple[str, ...],
    etcd_prefix: str,
) -> None:
    connection = EtcdConnection(etcd_endpoints)
    registry = EtcdRegistry(connection, clock=SystemClock(), prefix=f"{etcd_prefix}/services")
    hints = RedisHints(valkey_url, clock=SystemClock())
    heard: list[str] = []
    listening = asyncio.create_task(_listen(hints, heard))
    outside = {
        "dsn": store_dsn,
        "redis_url": valkey_url,
        "etcd_endpoints": ",".join(etcd_endpoints),
        "etcd_prefix": etcd_prefix,
    }
    async with service(**outside) as (process, caller):
        await eventually(lambda: _registered(registry))
        await eventually(lambda: len(heard) > 0)  # the one that every connect brings
        before = len(heard)
        (number,) = await caller.submit(spec())
        assert (await caller.job(number)).tenant == "default"
        await eventually(lambda: len(heard) > before)
        watch = caller.WatchJobs(api.WatchJobsRequest())
        await watch.read()
        process.send_signal(signal.SIGTERM)
        assert (await refusal(watch.read())).code is ErrorCode.UNAVAILABLE
        async with asyncio.timeout(WITHIN_S):
            assert await process.wait() == 0
        assert not await registry.list("submission")
    listening.cancel()
    await hints.close()
    await connection.close()


async def _registered(registry: EtcdRegistry) -> bool:
    return bool(await registry.list("submission"))


async def _listen(hints: RedisHints, heard: list[str]) -> None:
    async for topic in hints.subscribe(PLACEMENT):
        heard += [topic]


async def test_it_goes_on_without_redis_and_etcd(store_dsn: str, valkey_server: ValkeyLike) -> None:
    gone = {"redis_url": valkey_server.url, "etcd_endpoints": "127.0.0.1:1"}
    async with service(dsn=store_dsn, **gone) as (_, caller):
        valkey_server.kill()
        numbers = [await caller.submit(spec()) for _ in range(3)]
        assert len(numbers) == 3


async def test_it_comes_back_with_its_database(
    store_dsn: str, postgres_server: PostgresLike
) -> None:
    async with service(dsn=store_dsn) as (_, caller):
        (first,) = await caller.submit(spec("first"))
        await postgres_server.stop()
        found = await refusal(caller.submit(spec("second")))
        assert found.code is ErrorCode.UNAVAILABLE
        await postgres_server.start()
        await eventually(lambda: _submitted(caller))
        assert (await caller.job(first)).spec.name == "first"


async def _submitted(caller: Caller) -> bool:
    try:
        await caller.submit(spec("third"))
    except grpc.aio.AioRpcError:
        return False
    return True
