"""Makes calls with gRPC on an event loop: channels by address, retries, the way to the leader."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from atoll.adapters.system import SystemIds
from atoll.client.calls import Call
from atoll.client.channel import credentials, metadata, options
from atoll.client.config import ClientConfig
from atoll.client.errors import refusal
from atoll.client.retry import delay_s, targets_of, worth_another_try

OutT = TypeVar("OutT")
ReplyT = TypeVar("ReplyT", bound=Message)


class AsyncTransport:
    """Channels to one control plane, for one event loop."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._metadata = metadata(config)
        self._ids = SystemIds()
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._targets = targets_of(config)

    async def run(self, call: Call[ReplyT, OutT]) -> OutT:
        """The answer; what may be repeated is repeated when it could not be delivered."""
        targets, tries = self._targets[call.service], 0
        while True:
            try:
                return await self._once(call, targets.current())
            except Exception as error:
                tries += 1
                if not worth_another_try(error, repeatable=call.repeatable, tries=tries):
                    raise
                if not targets.failed(error):
                    await self.pause(tries)

    async def stream(
        self, path: str, request: Message, reply: type[ReplyT], *, timeout_s: float | None = None
    ) -> AsyncGenerator[ReplyT]:
        """The answers of one streaming call, made once; `path` is `/package.Service/Method`."""
        targets = self._targets[path.split("/")[1]]
        address = targets.current()
        method = self._channel(address).unary_stream(
            path, type(request).SerializeToString, reply.FromString
        )
        stream = method(request, timeout=timeout_s, metadata=self._metadata)
        try:
            async for answer in stream:
                yield answer
        except grpc.RpcError as error:
            found = refusal(error, address)
            targets.failed(found)
            raise found from error
        finally:
            stream.cancel()

    async def pause(self, tries: int) -> None:
        """Wait as long as is due after so many failures."""
        await asyncio.sleep(delay_s(tries, self._ids.jitter()))

    async def close(self) -> None:
        """Close every channel; streams end."""
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()

    async def _once(self, call: Call[ReplyT, OutT], address: str) -> OutT:
        method = self._channel(address).unary_unary(
            f"/{call.service}/{call.method}",
            type(call.request).SerializeToString,
            call.reply.FromString,
        )
        try:
            reply = await method(
                call.request, timeout=self._config.timeout_s, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise refusal(error, address) from error
        return call.read(reply)

    def _channel(self, address: str) -> grpc.aio.Channel:
        if address not in self._channels:
            self._channels[address] = self._opened(address)
        return self._channels[address]

    def _opened(self, address: str) -> grpc.aio.Channel:
        trusted = credentials(self._config, address)
        if trusted is None:
            return grpc.aio.insecure_channel(address, options=options())
        return grpc.aio.secure_channel(address, trusted, options=options())
