"""A bidirectional stream whose silence can be told from its death."""

import asyncio
from typing import Any, Generic, cast

import grpc.aio

from atoll.adapters.etcd.errors import EtcdUnavailable, translated
from atoll.adapters.etcd.methods import Request, Response


class Stream(Generic[Request, Response]):
    """One call in which both sides speak; every error is one of `errors`."""

    def __init__(self, call: "grpc.aio.StreamStreamCall[Any, Any]", endpoint: str) -> None:
        self._call = call
        self._endpoint = endpoint
        self._reading: asyncio.Task[Any] | None = None

    async def send(self, request: Request, *, within_s: float) -> None:
        """Hand a message to the connection; raises EtcdUnavailable."""
        try:
            async with asyncio.timeout(within_s):
                await self._call.write(request)
        except TimeoutError:
            raise self._silent(within_s) from None
        except asyncio.InvalidStateError:
            raise await self._end() from None
        except grpc.aio.AioRpcError as error:
            raise translated(error, self._endpoint) from error

    async def receive(self, *, within_s: float) -> Response:
        """The next message; raises EtcdUnavailable, also when it ended or kept silent."""
        received = await self.receive_or_none(within_s=within_s)
        if received is None:
            raise self._silent(within_s)
        return received

    async def receive_or_none(self, *, within_s: float) -> Response | None:
        """The next message, or None after `within_s` seconds of silence."""
        # A read that is cancelled cancels the whole call, so it stays pending instead.
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._call.read())
        await asyncio.wait({self._reading}, timeout=within_s)
        if not self._reading.done():
            return None
        reading, self._reading = self._reading, None
        try:
            received: Any = reading.result()
        except grpc.aio.AioRpcError as error:
            raise translated(error, self._endpoint) from error
        if received is grpc.aio.EOF:
            raise await self._end()
        return cast("Response", received)

    def cancel(self) -> None:
        """End the call."""
        if self._reading is not None:
            self._reading.cancel()
        self._call.cancel()

    async def _end(self) -> Exception:
        code, details = await self._call.code(), await self._call.details()
        return EtcdUnavailable(f"etcd at {self._endpoint} ended a stream: {code.name}: {details}")

    def _silent(self, within_s: float) -> Exception:
        return EtcdUnavailable(f"etcd at {self._endpoint}: no answer within {within_s:.1f} s")
