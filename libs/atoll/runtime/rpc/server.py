"""A gRPC server with health, limits, keepalive and TLS, which drains before it stops."""

import socket
from collections.abc import Callable, Mapping
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from atoll.ports.clock import Clock, Ids
from atoll.runtime import logs
from atoll.runtime.address import Address
from atoll.runtime.rpc.call import CallScope
from atoll.runtime.rpc.options import server_options
from atoll.runtime.rpc.pipeline import Pipeline
from atoll.runtime.settings import ServiceSettings, exposed_addresses
from atoll.runtime.tls import server_credentials

log = logs.logger(__name__)

MAX_MESSAGE_BYTES: Final = 16 << 20
WHOLE_SERVER: Final = ""
"""The name under which health answers for all services together."""

SERVING: Final = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING

Add = Callable[[grpc.aio.Server], None]
"""Adds a servicer: `lambda server: add_XServicer_to_server(servicer, server)`."""


class GrpcServer:
    """Serves some services at the address of the settings.

    `services` is keyed by full name (`atoll.api.submission.v1.SubmissionService`), which is also
    the name that health answers for.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        services: Mapping[str, Add],
        *,
        clock: Clock,
        ids: Ids,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self._settings = settings
        self._names = (WHOLE_SERVER, *services)
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(
            interceptors=[Pipeline(CallScope(clock, ids))],
            options=server_options(max_message_bytes=max_message_bytes),
        )
        for add in services.values():
            add(self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        if settings.reflection:
            names = (*services, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._server)
        self._address: Address | None = None
        self._serving = False

    @property
    def address(self) -> str:
        """`host:port` that it listens on; known once it has started."""
        if self._address is None:
            raise RuntimeError("the server has not started")
        return str(self._address)

    @property
    def advertised(self) -> str:
        """`host:port` under which others reach it: as told, or by this host's name."""
        if self._settings.advertise:
            return self._settings.advertise
        address = Address.parse(self.address)
        return str(Address(socket.gethostname(), address.port) if address.unspecified else address)

    @property
    def serving(self) -> bool:
        """True between `start` and `drain`."""
        return self._serving

    async def start(self) -> None:
        """Listen, and answer SERVING; raises OSError when the address cannot be had."""
        wanted = Address.parse(self._settings.listen)
        self._warn_when_exposed()
        self._address = Address(wanted.host, self._bind(wanted))
        await self._server.start()
        await self.set_serving(on=True)
        log.info("serving", address=self.address, tls=self._settings.tls)

    async def set_serving(self, *, on: bool) -> None:
        """Say to health checks whether new calls are welcome."""
        self._serving = on
        for name in self._names:
            await self._health.set(name, SERVING if on else NOT_SERVING)

    async def drain(self) -> None:
        """NOT_SERVING, no new calls, and the present ones get `drain_s` to end."""
        await self.set_serving(on=False)
        await self._server.stop(self._settings.drain_s)

    def _bind(self, wanted: Address) -> int:
        credentials = server_credentials(self._settings)
        try:
            if credentials is None:
                return self._server.add_insecure_port(str(wanted))
            return self._server.add_secure_port(str(wanted), credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {wanted}: {error}") from None

    def _warn_when_exposed(self) -> None:
        for exposed in exposed_addresses(self._settings):
            log.warning("insecure: others can read and call without TLS", exposed=exposed)
