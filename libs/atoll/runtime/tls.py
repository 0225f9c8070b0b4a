"""TLS material of a service, read when its server or a channel is made."""

from pathlib import Path

import grpc

from atoll.runtime.settings import ServiceSettings


def server_credentials(settings: ServiceSettings) -> grpc.ServerCredentials | None:
    """What the server shows, and whom it lets in; None without a certificate."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    pair = (settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())
    return grpc.ssl_server_credentials(
        [pair],
        root_certificates=_read(settings.tls_ca) if settings.tls_client_auth else None,
        require_client_auth=settings.tls_client_auth,
    )


def channel_credentials(settings: ServiceSettings) -> grpc.ChannelCredentials | None:
    """What a client of another service checks and shows; None when nothing here speaks TLS."""
    if settings.tls_ca is None and settings.tls_cert is None:
        return None
    return grpc.ssl_channel_credentials(
        root_certificates=_read(settings.tls_ca),
        private_key=_read(settings.tls_key),
        certificate_chain=_read(settings.tls_cert),
    )


def _read(path: Path | None) -> bytes | None:
    return None if path is None else path.read_bytes()
