"""Channels to other services: keepalive that their servers accept, TLS when it is configured."""

import grpc

from atoll.runtime import tracing
from atoll.runtime.rpc.caller import current
from atoll.runtime.rpc.options import client_options
from atoll.runtime.settings import ServiceSettings
from atoll.runtime.tls import channel_credentials

MAX_MESSAGE_BYTES = 16 << 20


def channel(
    address: str, settings: ServiceSettings, *, max_message_bytes: int = MAX_MESSAGE_BYTES
) -> grpc.aio.Channel:
    """A channel to `host:port`; it connects late, and again whenever it has to."""
    options = client_options(max_message_bytes=max_message_bytes)
    credentials = channel_credentials(settings)
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=options)
    return grpc.aio.secure_channel(address, credentials, options=options)


def outgoing_metadata() -> tuple[tuple[str, str], ...]:
    """What a call made on behalf of the present caller carries: who, for whom, in which trace."""
    who = current.get()
    parent = tracing.traceparent() or who.traceparent
    base = (("x-atoll-principal", who.principal), ("x-atoll-tenant", str(who.tenant)))
    return (*base, (tracing.TRACEPARENT, parent)) if parent else base
