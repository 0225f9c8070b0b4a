"""Calls of EC2's API off the event loop, with its errors in the port's words."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from atoll.ports.provider import NoCapacity, ProviderRefused, ProviderUnavailable

T = TypeVar("T")
NO_CAPACITY: Final = frozenset({
    "InsufficientCapacity",
    "InsufficientHostCapacity",
    "InsufficientInstanceCapacity",
    "InsufficientReservedInstanceCapacity",
    "SpotMaxPriceTooLow",
    "UnfulfillableCapacity",
})
UNSURE: Final = frozenset({
    "EC2ThrottledException",
    "InternalError",
    "InternalFailure",
    "RequestExpired",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestTimeout",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
    "Unavailable",
})
"""Whoever says so may do it the next time, or has done it already."""
MISMATCH: Final = "IdempotentParameterMismatch"
"""There is an instance under the token, launched with other settings."""
CONNECT_S: Final = 5.0
THREADS: Final = 4


class Calls:
    """One region's API. Nothing is asked before the first call."""

    def __init__(self, *, region: str, profile: str, endpoint_url: str, timeout_s: float) -> None:
        self._make: Callable[[], Any] = lambda: boto3.Session(
            region_name=region, profile_name=profile or None
        ).client(
            "ec2",
            endpoint_url=endpoint_url or None,
            config=Config(
                connect_timeout=min(CONNECT_S, timeout_s),
                read_timeout=timeout_s,
                retries={"mode": "standard", "max_attempts": 2},
                max_pool_connections=THREADS,
            ),
        )
        self._client: Any = None
        self._making = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ec2")

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """What it answers; raises ClientError when it is no, and ProviderUnavailable."""
        found: dict[str, Any] = await self._off_loop(
            lambda: getattr(self._made(), name)(**arguments)
        )
        return found

    async def pages(self, name: str, key: str, /, **arguments: Any) -> list[dict[str, Any]]:
        """What stands under `key` on all pages; raises ProviderUnavailable, whatever is wrong."""

        def read() -> list[dict[str, Any]]:
            pages = self._made().get_paginator(name).paginate(**arguments)
            return [each for page in pages for each in page.get(key, ())]

        try:
            return await self._off_loop(read)
        except ClientError as error:
            raise ProviderUnavailable(f"{name}: {error}") from error

    async def close(self) -> None:
        """Let connections and threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()

    def _made(self) -> Any:
        with self._making:
            if self._client is None:
                self._client = self._make()
            return self._client

    async def _off_loop(self, act: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, act)
        except BotoCoreError as error:  # no connection, no answer in time, no credentials
            raise ProviderUnavailable(str(error)) from error
        except ClientError as error:
            if code_of(error) in UNSURE or status_of(error) >= 500:
                raise ProviderUnavailable(str(error)) from error
            raise


@contextmanager
def launching() -> Iterator[None]:
    """What a launch answers, in the words of `create`; a mismatch stays what it is."""
    try:
        yield
    except ClientError as error:
        code = code_of(error)
        if code == MISMATCH:
            raise
        if code in NO_CAPACITY:
            raise NoCapacity(str(error)) from error
        raise ProviderRefused(str(error)) from error


def code_of(error: ClientError) -> str:
    """What EC2 calls it."""
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: ClientError) -> int:
    """The HTTP status."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
