"""EC2 as moto's server plays it, over HTTP on loopback.

Moto does not honour ClientToken, and has always capacity: both are added here, the first as EC2
documents it (the same token is the same instance, and another request under it a mismatch).
"""

import asyncio
import atexit
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

import boto3
import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import InstanceBackend
from moto.server import ThreadedMotoServer

from atoll.adapters.system import SystemClock
from atoll.burst.providers.registry import Site, make_provider
from atoll.ports.provider import Provider
from atoll.runtime.servers.ports import free_ports
from tests.services.burst.providers.orders import DEPLOYMENT

REGION: Final = "us-east-1"
IMAGE: Final = "ami-12c6146b"


class Launches:
    """Stands before moto's launches."""

    def __init__(self) -> None:
        self.error = ""
        """Code with which the next ones are refused."""
        self.asked: list[dict[str, Any]] = []
        self._launch = InstanceBackend.run_instances
        self._lock = threading.Lock()
        self._by_token: dict[str, tuple[str, Any]] = {}

    def run(self, backend: InstanceBackend, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            if self.error:
                raise EC2ClientError(self.error, "as the test says")
            token, wanted = kwargs["client_token"], repr((args, kwargs))
            if token in self._by_token:
                before, made = self._by_token[token]
                if before != wanted:
                    raise EC2ClientError("IdempotentParameterMismatch", "another request")
                return made
            self.asked.append({"image": args[0], "user_data": args[2]} | kwargs)
            made = self._launch(backend, *args, **kwargs)
            self._by_token[token] = (wanted, made)
            return made


class MotoGround:
    """One server with nothing in it."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.launches = Launches()
        self._changed = pytest.MonkeyPatch()

    async def begin(self, folder: Path) -> None:
        self._folder = folder
        launches = self.launches
        self._changed.setattr(InstanceBackend, "run_instances", _through(launches))
        # One session: each reads EC2's long description anew.
        self._changed.setattr(boto3, "Session", lambda **_: session())
        url = server_url()
        reset = Request(f"{url}/moto-api/reset", method="POST")
        (await asyncio.to_thread(urlopen, reset)).close()
        self.given |= {
            "region": REGION,
            "zones": {"us-east-1b": "", "us-east-1c": ""},
            "image_id": IMAGE,
            "types": {"m5.large": {"on_demand": 0.096}, "g4dn.xlarge": {"on_demand": 0.526}},
            "endpoint_url": url,
            "timeout_s": 30.0,
        }

    def broker(self, **given: Any) -> Provider:
        site = Site(SystemClock(), DEPLOYMENT, self._folder, ("dispatch.example.org:7074",))
        return make_provider("ec2", self.given | given, site)

    @property
    def backend(self) -> Any:
        """What moto knows of the region."""
        return ec2_backends[DEFAULT_ACCOUNT_ID][REGION]

    async def no_capacity(self) -> None:
        self.launches.error = "InsufficientInstanceCapacity"

    async def refuse(self) -> None:
        self.launches.error = "VcpuLimitExceeded"

    async def fall_silent(self) -> None:
        """Nobody listens there any more."""
        self.given["endpoint_url"] = f"http://127.0.0.1:{free_ports(1)[0]}"

    async def pass_time(self) -> None:
        """Moto boots and ends at once."""

    async def end(self) -> None:
        self._changed.undo()


@cache
def server_url() -> str:
    """Of one server for all tests of this process: to stop one takes longer than a test."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    atexit.register(server.stop)
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


@cache
def session() -> Any:
    """Of boto3, with credentials for tests."""
    return boto3.session.Session("testing", "testing", region_name=REGION)


def _through(launches: Launches) -> Callable[..., Any]:
    """A function, which becomes a method where it is put."""

    def run(backend: InstanceBackend, *args: Any, **kwargs: Any) -> Any:
        return launches.run(backend, *args, **kwargs)

    return run
