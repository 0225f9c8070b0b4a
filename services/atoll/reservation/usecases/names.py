"""Whether what a booking names is there: queues, clusters, nodes, domains, kinds of devices."""

import difflib
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from atoll.core.model.booking import Owners
from atoll.core.model.errors import ErrorCode, FieldViolation
from atoll.core.model.ids import Tenant
from atoll.core.model.reservation import ReservationSpec, What, WholeDomains, WholeNodes
from atoll.reservation.usecases.fleet import FleetCopy

NEAREST: Final = 3
CUTOFF: Final = 0.5
MOST_SHOWN: Final = 64
MOST_COMPARED: Final = 20_000


def unknown_names(spec: ReservationSpec, fleet: FleetCopy, tenant: Tenant) -> list[FieldViolation]:
    """A violation for each name that nothing has, with the nearest names."""
    return [
        *unknown_owners(spec.owners, fleet, tenant, at="spec.owners"),
        *unknown_what(spec.what, fleet, at="spec.what"),
    ]


def unknown_owners(
    owners: Owners, fleet: FleetCopy, tenant: Tenant, *, at: str
) -> Iterator[FieldViolation]:
    """Queues that the tenant does not have."""
    known = {name for name, queue in fleet.queues.items() if queue.tenant == tenant}
    for i, name in enumerate(owners.queues):
        if name not in known:
            yield _unknown(f"{at}.queues[{i}]", "queue", name, known=known)


def unknown_what(what: What, fleet: FleetCopy, *, at: str) -> Iterator[FieldViolation]:
    """Clusters, nodes, domains and kinds that do not exist."""
    clusters = fleet.open_clusters()
    for i, name in enumerate(what.clusters):
        if name not in clusters:
            yield _unknown(f"{at}.clusters[{i}]", "cluster", name, known=clusters)
    if what.nodes is not None:
        yield from _unknown_nodes(what.nodes, fleet, at=f"{at}.nodes")
    if what.domains is not None:
        yield from _unknown_domains(what.domains, fleet, at=f"{at}.domains")
    if any(amount.device is not None for amount in what.amounts):
        yield from _unknown_kinds(what, fleet, at=at)


def unknown_cluster(name: str, fleet: FleetCopy, *, at: str) -> Iterator[FieldViolation]:
    """A cluster that does not exist."""
    clusters = fleet.open_clusters()
    if name not in clusters:
        yield _unknown(at, "cluster", name, known=clusters)


def _unknown_nodes(nodes: WholeNodes, fleet: FleetCopy, *, at: str) -> Iterator[FieldViolation]:
    for i, name in enumerate(nodes.names):
        number = fleet.node_ids.get(name)
        if number is None or not fleet.nodes[number].present:
            yield _unknown(f"{at}.names[{i}]", "node", name, known=fleet.node_ids)


def _unknown_domains(
    domains: WholeDomains, fleet: FleetCopy, *, at: str
) -> Iterator[FieldViolation]:
    by_level = {
        (level, f"{node.cluster}/{domain}")
        for node in fleet.present()
        for level, domain in node.inventory.domains
    }
    levels = {level for level, _ in by_level}
    if domains.level not in levels:
        yield _unknown(f"{at}.level", "level", domains.level, known=levels)
        return
    known = {domain for level, domain in by_level if level == domains.level}
    for i, name in enumerate(domains.names):
        if name not in known:
            yield _unknown(f"{at}.names[{i}]", domains.level, name, known=known)


def _unknown_kinds(what: What, fleet: FleetCopy, *, at: str) -> Iterator[FieldViolation]:
    kinds = fleet.kinds()
    for i, amount in enumerate(what.amounts):
        if amount.device is not None and amount.device.kind not in {"", *kinds}:
            path = f"{at}.amounts[{i}].device.kind"
            yield _unknown(path, "device kind", amount.device.kind, known=kinds)


def _unknown(path: str, what: str, name: str, *, known: Collection[str]) -> FieldViolation:
    told = f"there is no {what} {name[:MOST_SHOWN]!r}"
    close = nearest(name, known)
    if close:
        told += f"; the nearest: {', '.join(close)}"
    elif not known:
        told += f"; there is no {what} at all"
    return FieldViolation(path, told, _CODES.get(what, ErrorCode.INVALID_FIELD))


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Names that are much like a name, the nearest first."""
    every = sorted(known)[:MOST_COMPARED]
    return difflib.get_close_matches(name, every, n=NEAREST, cutoff=CUTOFF)


_CODES: Final = {
    "queue": ErrorCode.QUEUE_NOT_FOUND,
    "cluster": ErrorCode.CLUSTER_NOT_FOUND,
    "node": ErrorCode.NODE_NOT_FOUND,
}
