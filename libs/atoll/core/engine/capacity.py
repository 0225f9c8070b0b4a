"""Whether a request could ever run, were all clusters empty. Asked at submission, without numpy."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from atoll.core.engine.offers import NodeOffer, offer_of, shortfall, tasks_on
from atoll.core.engine.sentences import node_reason, too_wide_reason
from atoll.core.model.burst import Offer, nodes_of
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster, ClusterState, Node
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.reason import Reason, ReasonCode
from atoll.core.model.resources import TaskShape


@dataclass(frozen=True, slots=True)
class ClusterOffer:
    """What a cluster has: how many nodes of each kind."""

    name: ClusterName
    can_guard: bool
    nodes: tuple[tuple[NodeOffer, int], ...]


@dataclass(frozen=True, slots=True)
class CapacitySummary:
    """Everything that could be used if nothing ran; cordoned, silent and suspect parts included."""

    clusters: tuple[ClusterOffer, ...]

    @classmethod
    def of(cls, nodes: Iterable[Node], clusters: Iterable[Cluster]) -> "CapacitySummary":
        """Sum nodes up by cluster; retired clusters and absent nodes are left out."""
        kept = sorted((c for c in clusters if c.state is not ClusterState.RETIRED), key=_name)
        counts: dict[ClusterName, Counter[NodeOffer]] = {c.name: Counter() for c in kept}
        for node in nodes:
            if node.present and node.cluster in counts:
                counts[node.cluster][offer_of(node.inventory)] += 1
        return cls(
            tuple(
                ClusterOffer(c.name, c.can_guard, tuple(sorted(counts[c.name].items())))
                for c in kept
            )
        )

    @classmethod
    def offered(cls, offers: Iterable[Offer]) -> "CapacitySummary":
        """Instances that may be rented: each is a cluster of its own, with equal nodes."""
        found = {
            (offer_of(nodes_of(o, ClusterName(o.instance_type))[0]), o.nodes): o for o in offers
        }
        return cls(
            tuple(
                ClusterOffer(ClusterName(offer.instance_type), True, (each,))
                for each, offer in sorted(found.items(), key=lambda pair: pair[0])
            )
        )


def fits_ever(capacity: CapacitySummary, request: GangRequest) -> tuple[Reason, ...]:
    """Why a request could never run, the nearest miss of all clusters first; empty: it could.

    Groups are looked at one by one: what passes may still be too much taken together.
    """
    known = [cluster for cluster in capacity.clusters if cluster.nodes]
    misses = [tuple(_misses(cluster, request)) for cluster in known]
    if not all(misses):
        return ()
    found = dict.fromkeys(reason for miss in misses for reason in miss)
    return tuple(sorted(found, key=_nearest))


def _misses(cluster: ClusterOffer, request: GangRequest) -> Iterator[Reason]:
    if request.needs_guard and not cluster.can_guard:
        yield Reason(
            ReasonCode.ON_LOST_UNSUPPORTED,
            f"cluster {cluster.name} cannot stop a run that it has lost",
            cluster=cluster.name,
            help="submit with on_lost: hold",
        )
    for group in request.groups:
        yield from _group_misses(cluster, request, group)


def _group_misses(
    cluster: ClusterOffer, request: GangRequest, group: GroupRequest
) -> Iterator[Reason]:
    rooms = [_room(cluster, request, shape=s, most=group.min_count) for s in group.shapes]
    most = max(rooms)
    if most >= group.min_count:
        return
    shape = group.shapes[rooms.index(most)]
    if most or any(tasks_on(offer, shape, most=1) for offer, _ in cluster.nodes):
        topology = request.topology
        where = f"one {topology.level} of " if topology and topology.required else ""
        yield too_wide_reason(shape, group.min_count, most, where=f"{where}{cluster.name}")
    else:
        yield from _node_misses(cluster, shape)


def _room(cluster: ClusterOffer, request: GangRequest, *, shape: TaskShape, most: int) -> int:
    """Tasks of a shape that fit at once in the cluster, or in its roomiest domain."""
    level = request.topology.level if request.topology and request.topology.required else None
    rooms: Counter[tuple[str, ...]] = Counter()
    for offer, count in cluster.nodes:
        domain = () if level is None else _domain(offer, level)
        if domain is not None:
            rooms[domain] += count * tasks_on(offer, shape, most=most)
    return max(rooms.values(), default=0)


def _domain(offer: NodeOffer, level: str) -> tuple[str, ...] | None:
    levels = [name for name, _ in offer.domains]
    if level not in levels:
        return None
    return tuple(name for _, name in offer.domains[: levels.index(level) + 1])


def _node_misses(cluster: ClusterOffer, shape: TaskShape) -> Iterator[Reason]:
    best: dict[ReasonCode, int] = {}
    nodes: Counter[ReasonCode] = Counter()
    for offer, count in cluster.nodes:
        miss = shortfall(offer, shape)
        nodes[miss.code] += count
        best[miss.code] = max(miss.available, best.get(miss.code, 0))
    for code, available in best.items():
        reason = node_reason(code, shape, available=available, nodes=nodes[code])
        message = f"cluster {cluster.name}: {reason.message}"
        yield replace(reason, cluster=cluster.name, message=message)


def _nearest(reason: Reason) -> tuple[float, int, str, str]:
    # How much of the need is there at the best, so that the nearest miss comes first.
    share = reason.available / reason.needed if reason.needed else 0.0
    return -share, -reason.count, reason.code, reason.cluster


def _name(cluster: Cluster) -> ClusterName:
    return cluster.name
