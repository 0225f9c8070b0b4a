"""A service as a real process: what it prints, how it stops."""

import asyncio
import json
import os
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import grpc
import pytest

from atoll.api.submission.v1 import submission_pb2 as api
from atoll.api.submission.v1 import submission_pb2_grpc as api_grpc
from atoll.runtime.rpc.channel import channel
from atoll.runtime.settings import ServiceSettings
from tests.runtime.echo import BUG, METHOD

MAIN = [sys.executable, "-m", "tests.runtime.echo_main"]
ROOT = Path(__file__).parents[2]
WITHIN_S = 90


class Running:
    """A started service with what it has logged so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    async def logged(self, event: str) -> dict[str, Any]:
        """The first line with this event, from here on."""
        assert self.process.stderr is not None
        async with asyncio.timeout(WITHIN_S):
            async for raw in self.process.stderr:
                self.lines.append(json.loads(raw))
                if self.lines[-1]["event"] == event:
                    return self.lines[-1]
        raise AssertionError(f"ended without {event!r}: {self.lines}")

    async def ended(self) -> int:
        """Its exit code."""
        async with asyncio.timeout(WITHIN_S):
            return await self.process.wait()


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[Running]:
    process = await asyncio.create_subprocess_exec(
        *MAIN, "--metrics-listen=127.0.0.1:0", *arguments, cwd=ROOT,
        stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def fetched(url: str) -> tuple[int, str]:
    def get() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=WITHIN_S) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(get)


async def test_it_serves_calls_metrics_and_probes_until_sigterm() -> None:
    async with started() as service:
        metrics = (await service.logged("starting"))["metrics"]
        address = (await service.logged("serving"))["address"]
        async with channel(address, ServiceSettings()) as dialled:
            stub: Any = api_grpc.SubmissionServiceStub(dialled)
            assert (await stub.GetJob(api.GetJobRequest(job_id=5))).job.id == 5
        status, text = await fetched(f"http://{metrics}/metrics")
        assert status == 200
        assert "rpc_server_call_duration_seconds_bucket" in text
        assert (await fetched(f"http://{metrics}/healthz"))[0] == 200
        assert (await fetched(f"http://{metrics}/readyz"))[0] == 200
        assert (await fetched(f"http://{metrics}/other"))[0] == 404
        service.process.send_signal(signal.SIGTERM)
        await service.logged("stopped")
        assert await service.ended() == 0
        assert {line["service"] for line in service.lines} == {"echo"}


async def test_the_log_of_a_call_says_whose_it_is() -> None:
    trace = "a" * 32
    metadata = (
        ("x-atoll-principal", "ann"),
        ("x-request-id", "r-1"),
        ("traceparent", f"00-{trace}-{'b' * 16}-01"),
    )
    async with started() as service:
        address = (await service.logged("serving"))["address"]
        async with channel(address, ServiceSettings()) as dialled:
            stub: Any = api_grpc.SubmissionServiceStub(dialled)
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.GetJob(api.GetJobRequest(job_id=BUG), metadata=metadata)
        line = await service.logged("call failed")
        assert (line["principal"], line["tenant"], line["request_id"]) == ("ann", "default", "r-1")
        assert (line["rpc_method"], line["trace_id"]) == (METHOD, trace)
        assert "ZeroDivisionError" in line["exception"]


async def test_a_present_call_may_end_while_it_drains() -> None:
    async with started("--drain-s=30") as service:
        metrics = (await service.logged("starting"))["metrics"]
        address = (await service.logged("serving"))["address"]
        async with channel(address, ServiceSettings()) as dialled:
            stub: Any = api_grpc.SubmissionServiceStub(dialled)
            busy = stub.WatchJobs(api.WatchJobsRequest(queue="wait"))
            await busy.read()
            service.process.send_signal(signal.SIGTERM)
            await service.logged("draining")
            assert (await fetched(f"http://{metrics}/readyz"))[0] == 503
            assert (await fetched(f"http://{metrics}/healthz"))[0] == 200
            assert service.process.returncode is None
            busy.cancel()
        await service.logged("stopped")
        assert await service.ended() == 0


async def test_config_prints_settings_with_their_origins() -> None:
    process = await asyncio.create_subprocess_exec(
        *MAIN, "config", "--log-level=debug", cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "ATOLL_DRAIN_S": "3"},
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), WITHIN_S)
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in out.decode().splitlines()}
    assert process.returncode == 0
    assert lines["log_level"] == "debug  (flag --log-level)"
    assert lines["drain_s"] == "3.0  (environment ATOLL_DRAIN_S)"
    assert lines["insecure"] == "False  (default)"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--listen=0.0.0.0:0"], "is not loopback"),
        (["--config=/nonexistent/file"], "No such file"),
        (["--trace-ratio=2"], "trace_ratio"),
    ],
)
async def test_a_wrong_configuration_ends_it_with_2(arguments: list[str], told: str) -> None:
    async with started(*arguments) as service:
        _, error = await asyncio.wait_for(service.process.communicate(), WITHIN_S)
        assert service.process.returncode == 2
        assert told in error.decode()
        assert "Traceback" not in error.decode()


async def test_a_failing_service_is_logged_and_ends_with_1() -> None:
    async with started("--fail") as service:
        line = await service.logged("service failed")
        assert "failed on purpose" in line["exception"]
        assert await service.ended() == 1
