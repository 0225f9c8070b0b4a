"""Atoll's services as real processes, to be killed, frozen and started again."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

READY_WITHIN_S = 240.0
END_WITHIN_S = 60.0


class ServiceProcess:
    """One process of one service. It ends with the tests at the latest."""

    def __init__(
        self, service: str, *, folder: Path, env: Mapping[str, str], ports: tuple[int, int]
    ) -> None:
        self.service = service
        self.log = folder / f"{service}-{ports[0]}.log"
        self.address = f"127.0.0.1:{ports[0]}"
        self.metrics = f"127.0.0.1:{ports[1]}"
        self._env = {
            **env,
            "ATOLL_LISTEN": self.address,
            "ATOLL_METRICS_LISTEN": self.metrics,
            "ATOLL_DRAIN_S": "1",
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, **env: str) -> None:
        """Start it, with more environment; `wait_ready` tells when it serves."""
        assert not self.running()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"atoll.{self.service}"],
                env={**os.environ, **self._env, **env},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    async def wait_ready(self) -> None:
        """Until /readyz (agents) or gRPC health says so; fails with the log's end."""
        for _ in range(int(READY_WITHIN_S / 0.1)):
            if await self._ready():
                return
            assert self.running(), f"{self.service} ended:\n{self.tail()}"
            await asyncio.sleep(0.1)
        raise AssertionError(f"{self.service} is not ready:\n{self.tail()}")

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(END_WITHIN_S)

    def pause(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def wait_killed(self, within_s: float) -> None:
        """Wait for a failpoint to end it."""
        assert self._process is not None
        assert self._process.wait(within_s) == -signal.SIGKILL, self.tail()

    def stop(self) -> None:
        """SIGTERM, SIGKILL when that does not help."""
        if not self.running():
            return
        assert self._process is not None
        self.resume()
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self, size: int = 4000) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-size:]

    async def _ready(self) -> bool:
        if self.service == "agent":
            return await self._http_ready()
        async with grpc.aio.insecure_channel(self.address) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            try:
                answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=1)
            except grpc.RpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def _http_ready(self) -> bool:
        host, port = self.metrics.split(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
            line = await asyncio.wait_for(reader.readline(), 2)
            writer.close()
        except (OSError, TimeoutError):
            return False
        return b" 200" in line

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)
