"""Asks /readyz of the service in the same container: a health check for compose.

Takes what the service itself was told by environment: ATOLL_METRICS_LISTEN, ATOLL_TLS_CERT and
ATOLL_TLS_CA. Whoever starts it often is glad that it imports little.
"""

import argparse
import http.client
import os
import ssl
import sys
from collections.abc import Sequence
from typing import Final

from atoll.runtime.address import Address

ANSWER_WITHIN_S: Final = 3.0
READY: Final = 200


def main(arguments: Sequence[str]) -> int:
    """0 when the service is ready, 1 when it is not."""
    parser = argparse.ArgumentParser(prog="probe", description=main.__doc__)
    parser.add_argument(
        "address", nargs="?", default=os.environ.get("ATOLL_METRICS_LISTEN"), help="HOST:PORT"
    )
    address = parser.parse_args(arguments).address
    if not address:
        parser.error("say where: HOST:PORT, or ATOLL_METRICS_LISTEN")
    try:
        status = _ask(Address.parse(address))
    except (OSError, ValueError, http.client.HTTPException) as error:
        print(f"probe: {error}", file=sys.stderr)  # noqa: T201 - what compose shows
        return 1
    return 0 if status == READY else 1


def _ask(address: Address) -> int:
    connection = _connection(address)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    finally:
        connection.close()


def _connection(address: Address) -> http.client.HTTPConnection:
    # A service serves loopback without TLS even when it has a certificate.
    if address.loopback or "ATOLL_TLS_CERT" not in os.environ:
        host = "127.0.0.1" if address.unspecified else address.host
        return http.client.HTTPConnection(host, address.port, timeout=ANSWER_WITHIN_S)
    trust = ssl.create_default_context(cafile=os.environ.get("ATOLL_TLS_CA"))
    host = "localhost" if address.unspecified else address.host
    return http.client.HTTPSConnection(host, address.port, timeout=ANSWER_WITHIN_S, context=trust)
