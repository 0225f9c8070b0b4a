"""`atoll doctor`."""

import importlib
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from atoll.cli import exits
from atoll.cli.options import DEFAULT_CONNECTION, Connection
from atoll.cli.words import plural
from atoll.client.channel import credentials
from atoll.client.config import ClientConfig
from atoll.client.errors import CallFailed
from atoll.client.sync import Client
from atoll.core.model.burst import ENDED
from atoll.core.model.errors import DomainError

Check = tuple[str, bool, str]
"""What was looked at, whether it is well, and what was found or would help."""

EMBEDDED: Final = "atoll.embedded.commands"


def doctor(*, connection: Connection = DEFAULT_CONNECTION) -> int:
    """Check configuration and connections, and tell what would help.

    Ends with 0 when all is well, with 5 otherwise.

    Args:
        connection: Where the control plane is.
    """
    well = True
    for what, good, told in _checks(connection):
        print(f"{'ok ' if good else 'BAD'}  {what}{f': {told}' if told else ''}")
        well = well and good
    return exits.OK if well else exits.UNAVAILABLE


def _checks(connection: Connection) -> Iterator[Check]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield "Python", sys.version_info >= (3, 11), version
    try:
        config = connection.config()
    except DomainError as error:
        yield "configuration", False, error.message
        return
    yield "configuration", True, config.origins.get("endpoint", "default")
    yield from _connection(config)
    yield from _embedded()


def _connection(config: ClientConfig) -> Iterator[Check]:
    try:
        secure = credentials(config, config.endpoint) is not None
    except OSError as error:
        yield "TLS", False, f"{error.filename}: {error.strerror}"
        return
    yield "TLS", True, "on" if secure else "off, for an address of this machine or by tls: off"
    with Client(config=config) as client:
        yield from _submission(client)
        yield from _placement(client)
        yield from _reservation(client)
        yield from _burst(client)


def _submission(client: Client) -> Iterator[Check]:
    try:
        clusters = client.clusters()
    except (DomainError, CallFailed) as error:
        yield "control plane", False, f"{error.message}; `atoll up` starts one here"
        return
    yield "control plane", True, client.config.endpoint
    active = [cluster.name for cluster in clusters if cluster.state == "ACTIVE"]
    told = ", ".join(active) or "none is ACTIVE, so no job can start; see `atoll clusters`"
    yield "clusters", bool(active), told
    nodes = sum(cluster.nodes_up for cluster in clusters)
    yield "nodes", nodes > 0, f"{plural(nodes, 'node')} up"


def _placement(client: Client) -> Iterator[Check]:
    try:
        status = client.placement_status()
    except (DomainError, CallFailed) as error:
        yield "placement", False, error.message
        return
    leader = client.config.placement[0] if status.leader else status.leader_address
    yield "placement leader", bool(leader), leader or "nobody leads: no job is placed"


def _reservation(client: Client) -> Iterator[Check]:
    if not client.config.reservation:
        return  # this control plane has no such service, or nobody told where
    try:
        coming = next(client.reservations.list(page_size=1), None)
    except (DomainError, CallFailed) as error:
        yield "reservations", False, error.message
        return
    yield "reservations", True, f"next: {coming.name}" if coming else "nothing is booked"


def _burst(client: Client) -> Iterator[Check]:
    if not client.config.burst:
        return  # as with reservations
    try:
        status = client.burst.status()
    except (DomainError, CallFailed) as error:
        yield "renting", False, error.message
        return
    live = sum(n for state, n in status.instances.items() if state not in ENDED)
    told = f"{plural(live, 'instance')} rented" if status.leader else "nobody leads: none is ended"
    yield "renting", bool(status.leader), told


def _embedded() -> Iterable[Check]:
    try:
        checks = importlib.import_module(EMBEDDED).doctor_checks
    except (ImportError, AttributeError):
        return ()
    found: Iterable[Check] = checks()
    return found
