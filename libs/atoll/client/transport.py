"""Makes calls with blocking gRPC: channels by address, retries, the way to the leader."""

import threading
from collections.abc import Iterator
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


class Transport:
    """Channels to one control plane; safe to use from several threads."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._metadata = metadata(config)
        self._ids = SystemIds()
        self._lock = threading.Lock()
        self._channels: dict[str, grpc.Channel] = {}
        self._targets = targets_of(config)

    def run(self, call: Call[ReplyT, OutT]) -> OutT:
        """The answer; what may be repeated is repeated when it could not be delivered."""
        targets, tries = self._targets[call.service], 0
        while True:
            try:
                return self._once(call, targets.current())
            except Exception as error:
                tries += 1
                if not worth_another_try(error, repeatable=call.repeatable, tries=tries):
                    raise
                if not targets.failed(error):
                    self.pause(tries)

    def stream(
        self, path: str, request: Message, reply: type[ReplyT], *, timeout_s: float | None = None
    ) -> Iterator[ReplyT]:
        """The answers of one streaming call, made once; `path` is `/package.Service/Method`."""
        targets = self._targets[path.split("/")[1]]
        address = targets.current()
        method = self._channel(address).unary_stream(
            path, type(request).SerializeToString, reply.FromString
        )
        stream = method(request, timeout=timeout_s, metadata=self._metadata)
        try:
            yield from stream
        except grpc.RpcError as error:
            found = refusal(error, address)
            targets.failed(found)
            raise found from error
        finally:
            stream.cancel()

    def pause(self, tries: int) -> None:
        """Wait as long as is due after so many failures."""
        threading.Event().wait(delay_s(tries, self._ids.jitter()))

    def close(self) -> None:
        """Close every channel; streams end."""
        with self._lock:
            for channel in self._channels.values():
                channel.close()
            self._channels.clear()

    def _once(self, call: Call[ReplyT, OutT], address: str) -> OutT:
        method = self._channel(address).unary_unary(
            f"/{call.service}/{call.method}",
            type(call.request).SerializeToString,
            call.reply.FromString,
        )
        try:
            reply = method(call.request, timeout=self._config.timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            raise refusal(error, address) from error
        return call.read(reply)

    def _channel(self, address: str) -> grpc.Channel:
        with self._lock:
            if address not in self._channels:
                self._channels[address] = self._opened(address)
            return self._channels[address]

    def _opened(self, address: str) -> grpc.Channel:
        trusted = credentials(self._config, address)
        if trusted is None:
            return grpc.insecure_channel(address, options=options())
        return grpc.secure_channel(address, trusted, options=options())
