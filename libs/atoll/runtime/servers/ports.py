"""Free ports of the loopback interface."""

import os
import socket
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
FIRST_PORT: Final = 15_000
EPHEMERAL_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")

# Processes that were started together begin far apart (the golden section of the range), or one
# would come by the ports of another just while its servers are started again.
_offsets = count(os.getpid() * 10_981)


def free_ports(number: int) -> tuple[int, ...]:
    """`number` distinct ports that nobody uses now, nor just did: who was killed comes back.

    They lie below the ephemeral range: a client that keeps dialling a stopped server
    would otherwise get the server's own port as its source sooner or later, connect to
    itself, and keep the server from coming back.
    """
    span = _first_ephemeral() - FIRST_PORT
    ports: list[int] = []
    with ExitStack() as held:
        for _ in range(span):
            port = FIRST_PORT + next(_offsets) % span
            probe = held.enter_context(socket.socket())
            if _bind(probe, port):
                ports.append(port)
            if len(ports) == number:
                return tuple(ports)
    raise OSError(f"fewer than {number} free ports below {FIRST_PORT + span}")


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket() as probe:
        # Connections of a server that has just ended may linger there: it listens all the same.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return _bind(probe, port)


def _bind(probe: socket.socket, port: int) -> bool:
    try:
        probe.bind((LOOPBACK, port))
    except OSError:
        return False
    return True


def _first_ephemeral() -> int:
    try:
        return int(EPHEMERAL_RANGE.read_text().split()[0])
    except OSError:
        return 49_152
