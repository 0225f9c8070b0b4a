"""How channels to the control plane are made: TLS unless the address is of this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import grpc

from atoll.client.config import ClientConfig
from atoll.runtime.address import Address
from atoll.runtime.rpc.options import client_options

MAX_MESSAGE_BYTES: Final = 16 << 20
Metadata = tuple[tuple[str, str], ...]


def options() -> Sequence[tuple[str, int]]:
    """Keepalive that the servers accept; retries are ours, so gRPC's are off."""
    return [*client_options(max_message_bytes=MAX_MESSAGE_BYTES), ("grpc.enable_retries", 0)]


def credentials(config: ClientConfig, address: str) -> grpc.ChannelCredentials | None:
    """What to check and show at `address`; None: no TLS."""
    if config.tls == "off" or (config.tls == "auto" and is_local(address)):
        return None
    return grpc.ssl_channel_credentials(
        root_certificates=_read(config.tls_ca),
        private_key=_read(config.tls_key),
        certificate_chain=_read(config.tls_cert),
    )


def is_local(address: str) -> bool:
    """True when only this machine can answer there."""
    if address.startswith("unix:"):
        return True
    try:
        return Address.parse(address).loopback
    except ValueError:
        return False


def metadata(config: ClientConfig) -> Metadata:
    """Who calls, on whose behalf."""
    return (
        ("x-atoll-principal", _header(config.principal)),
        ("x-atoll-tenant", _header(config.tenant)),
    )


def _header(text: str) -> str:
    return text.encode("ascii", "replace").decode()


def _read(path: str) -> bytes | None:
    return Path(path).expanduser().read_bytes() if path else None
