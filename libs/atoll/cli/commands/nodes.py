"""`atoll nodes`, `gpus`, `cordon`, `uncordon`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from atoll.cli import exits
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.render import Column, Listing, show
from atoll.cli.words import bytes_text, cpus_text, devices_text
from atoll.client.views import ClusterInfo, NodeInfo
from atoll.core.model.resources import BLOCKS_PER_DEVICE


@dataclass(frozen=True, slots=True)
class Devices:
    """Accelerators of one kind in one place."""

    cluster: str
    node: str
    kind: str
    count: int
    free_blocks: int


def nodes(
    *,
    cluster: str = "",
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """List nodes and what is free on them.

    Args:
        cluster: Only of this cluster.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        show(client.nodes(cluster), NODES, output)
    return exits.OK


def gpus(
    *,
    cluster: str = "",
    by_node: Annotated[bool, Parameter(name="--nodes", negative=())] = False,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """List accelerators by kind, and how many are free; shares count as parts of one.

    Args:
        cluster: Only of this cluster.
        by_node: One row a node, in place of one a cluster.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        found = (
            list(_of_nodes(client.nodes(cluster)))
            if by_node
            else list(_of_clusters(client.clusters(), cluster))
        )
    show(found, DEVICES, output)
    return exits.OK


def cordon(
    place: Annotated[str, Parameter(name="CLUSTER[/NODE]")],
    /,
    *,
    reason: str = "",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Keep new work from a cluster or a node. What runs there goes on.

    Args:
        place: CLUSTER, or CLUSTER/NODE.
        reason: Why, for those who wonder.
        connection: Where the control plane is.
    """
    cluster, _, node = place.partition("/")
    with connection.client() as client:
        client.cordon(cluster, node, reason=reason)
    print(f"{place} takes no new work")
    return exits.OK


def uncordon(
    place: Annotated[str, Parameter(name="CLUSTER[/NODE]")],
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Take a cordon back.

    Args:
        place: CLUSTER, or CLUSTER/NODE.
        connection: Where the control plane is.
    """
    cluster, _, node = place.partition("/")
    with connection.client() as client:
        client.uncordon(cluster, node)
    print(f"{place} takes new work again")
    return exits.OK


def _of_clusters(clusters: Iterable[ClusterInfo], only: str) -> Iterator[Devices]:
    for cluster in clusters:
        if only in ("", cluster.name):
            for kind, count in sorted(cluster.devices.items()):
                free = cluster.free_blocks.get(kind, 0)
                yield Devices(cluster.name, "", kind, count=count, free_blocks=free)


def _of_nodes(nodes: Iterable[NodeInfo]) -> Iterator[Devices]:
    for node in nodes:
        kinds = Counter(device.kind for device in node.inventory.devices)
        for kind, count in sorted(kinds.items()):
            mine = {device.index for device in node.inventory.devices if device.kind == kind}
            held = sum(_blocks_held(node, index) for index in mine)
            yield Devices(
                node.cluster,
                node.inventory.name,
                kind,
                count=count,
                free_blocks=count * BLOCKS_PER_DEVICE - held,
            )


def _blocks_held(node: NodeInfo, index: int) -> int:
    uses = [use for use in node.device_use if use.index == index]
    # A device any slice of which is taken is not free for anything else.
    sliced = any(use.slice_mask for use in uses)
    return BLOCKS_PER_DEVICE if sliced else sum(use.blocks for use in uses)


def _state(node: NodeInfo) -> str:
    marks = [
        "" if node.inventory.up else "DOWN",
        "CORDONED" if node.cordoned else "",
        "SUSPECT" if node.suspect else "",
    ]
    return ",".join(mark for mark in marks if mark) or "UP"


def _devices(node: NodeInfo) -> str:
    parts = list(_of_nodes([node]))
    return " ".join(f"{d.kind}:{devices_text(d.free_blocks)}/{d.count}" for d in parts) or "-"


def _free_cpu(node: NodeInfo) -> str:
    own = node.inventory.cpu_milli
    free = own - node.used_cpu_milli - node.inventory.local_use.cpu_milli
    return f"{cpus_text(free)}/{cpus_text(own)}"


def _free_memory(node: NodeInfo) -> str:
    own = node.inventory.memory_bytes
    free = own - node.used_memory_bytes - node.inventory.local_use.memory_bytes
    return f"{bytes_text(free)}/{bytes_text(own)}"


NODES: Final[Listing[NodeInfo]] = Listing(
    columns=(
        Column("CLUSTER", lambda node: node.cluster),
        Column("NODE", lambda node: node.inventory.name),
        Column("STATE", _state, style=lambda node: "green" if _state(node) == "UP" else "red"),
        Column("FREE CPU", _free_cpu, right=True),
        Column("FREE MEMORY", _free_memory, right=True),
        Column("FREE DEVICES", _devices),
        Column(
            "DOMAINS",
            lambda node: (
                " ".join(f"{level}={name}" for level, name in node.inventory.domains) or "-"
            ),
            wide=True,
        ),
        Column(
            "LABELS",
            lambda node: " ".join(f"{key}={value}" for key, value in node.inventory.labels) or "-",
            wide=True,
        ),
        Column("WHY", lambda node: node.cordon_reason or "-", wide=True),
    ),
    name=lambda node: f"{node.cluster}/{node.inventory.name}",
    empty="no nodes",
)
DEVICES: Final[Listing[Devices]] = Listing(
    columns=(
        Column("CLUSTER", lambda row: row.cluster),
        Column("NODE", lambda row: row.node or "-"),
        Column("KIND", lambda row: row.kind),
        Column("TOTAL", lambda row: str(row.count), right=True),
        Column("FREE", lambda row: devices_text(row.free_blocks), right=True),
    ),
    name=lambda row: row.kind,
    empty="no accelerators; `atoll up --clusters simulated` shows a cluster that has some",
)
