"""Calls to whichever member of an etcd cluster answers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
import grpc.aio

from atoll.adapters.etcd.errors import EtcdUnavailable, translated
from atoll.adapters.etcd.methods import Method, Request, Response
from atoll.adapters.etcd.stream import Stream

CALL_WITHIN_S: Final = 1.0
"""For one endpoint; a call tries each endpoint once."""

OPTIONS: Final = (
    # A member that comes back is dialled within a second, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # etcd closes connections that ping more often than every 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    # Two channels to one address must not share a broken connection.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)

# A member cut off from its leader ends the call instead of keeping silent.
NEEDS_LEADER: Final = (("hasleader", "true"),)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the CA to trust (the system's without one) and our own certificate."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def paths(self) -> tuple[Path | None, Path | None, Path | None]:
        """CA, certificate, key."""
        return self.ca, self.cert, self.key

    def credentials(self) -> grpc.ChannelCredentials:
        """Raises OSError when a file cannot be read."""
        ca, cert, key = (path.read_bytes() if path else None for path in self.paths())
        return grpc.ssl_channel_credentials(
            root_certificates=ca, private_key=key, certificate_chain=cert
        )


class EtcdConnection:
    """One channel per endpoint, and the endpoint in use, left when it does not answer.

    `endpoints` are `host:port`, or URLs; https needs `tls`. Use it in one event loop.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        tls: TlsFiles | None = None,
        call_within_s: float = CALL_WITHIN_S,
    ) -> None:
        if not endpoints:
            raise ValueError("etcd needs at least one endpoint")
        self._targets = tuple(_target(endpoint, tls) for endpoint in endpoints)
        self._credentials = tls.credentials() if tls else None
        self._call_within_s = call_within_s
        self._channels: dict[int, grpc.aio.Channel] = {}
        self._current = 0

    async def call(
        self,
        method: Method[Request, Response],
        request: Request,
        *,
        within_s: float | None = None,
    ) -> Response:
        """Ask each endpoint once, `within_s` seconds each, beginning with the one in use.

        A request may be carried out by an endpoint whose answer was lost, and then again
        by the next. Raises EtcdUnavailable, EtcdRejected or LeaseLost.
        """
        failure: Exception = EtcdUnavailable("no endpoint was asked")
        for _ in self._targets:
            index = self._current
            ask = self._channel(index).unary_unary(
                method.path,
                request_serializer=method.encode,
                response_deserializer=method.decode,
            )
            try:
                return await ask(
                    request, timeout=within_s or self._call_within_s, metadata=NEEDS_LEADER
                )
            except grpc.aio.AioRpcError as error:
                failure = translated(error, self._targets[index])
            if not isinstance(failure, EtcdUnavailable):
                break
            self._leave(index)
        raise failure

    @asynccontextmanager
    async def stream(
        self, method: Method[Request, Response]
    ) -> AsyncIterator[Stream[Request, Response]]:
        """Open a stream to the endpoint in use; when it breaks, the next one opens elsewhere."""
        index = self._current
        dial = self._channel(index).stream_stream(
            method.path, request_serializer=method.encode, response_deserializer=method.decode
        )
        stream: Stream[Request, Response] = Stream(
            dial(metadata=NEEDS_LEADER), self._targets[index]
        )
        try:
            yield stream
        except EtcdUnavailable:
            self._leave(index)
            raise
        finally:
            stream.cancel()

    async def close(self) -> None:
        """End all calls and free the connections."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()

    def _channel(self, index: int) -> grpc.aio.Channel:
        if index not in self._channels:
            self._channels[index] = self._dial(self._targets[index])
        return self._channels[index]

    def _dial(self, target: str) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(target, options=OPTIONS)
        return grpc.aio.secure_channel(target, self._credentials, options=OPTIONS)

    def _leave(self, index: int) -> None:
        """Go on to the next endpoint, unless another call has done so already."""
        if self._current == index:
            self._current = (index + 1) % len(self._targets)


def _target(endpoint: str, tls: TlsFiles | None) -> str:
    scheme, separator, rest = endpoint.rpartition("://")
    if separator and scheme not in {"http", "https"}:
        raise ValueError(f"{endpoint}: etcd is reached by http:// or https://")
    if scheme and (scheme == "https") != (tls is not None):
        raise ValueError(f"{endpoint}: https:// and TLS files come together or not at all")
    return rest.rstrip("/")
