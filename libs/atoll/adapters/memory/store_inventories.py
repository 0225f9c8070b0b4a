"""Nodes as their agents report them, in memory."""

from collections.abc import Iterator
from dataclasses import replace

from atoll.adapters.memory.store_rows import Rows
from atoll.core.model.ids import NodeId
from atoll.core.model.inventory import Node, NodeInventory
from atoll.core.model.messages import ChangeKind
from atoll.ports.store.dispatch import InventoryDelta


def put_inventory(rows: Rows, delta: InventoryDelta, *, numbers: Iterator[int]) -> bool:
    """Write what differs; False when the session was taken over. An older number is left out."""
    cluster = rows.clusters.get(delta.cluster)
    if cluster is None or cluster.session_epoch != delta.session_epoch:
        return False
    if delta.number < cluster.inventory_number:
        return True
    listed = {node.name for node in delta.nodes}
    known = [node for node in rows.nodes.values() if node.cluster == delta.cluster]
    touched = {
        *_put(rows, delta, numbers),
        *_mark_gone(rows, delta, [n for n in known if _is_gone(n, delta, listed)]),
        *_clear_suspicions(rows, delta),
    }
    rows.clusters.put(delta.cluster, replace(cluster, inventory_number=delta.number))
    if touched:
        rows.changes.append((ChangeKind.NODES, frozenset(touched), 0))
    return True


def _put(rows: Rows, delta: InventoryDelta, numbers: Iterator[int]) -> Iterator[NodeId]:
    for inventory in sorted(delta.nodes, key=lambda node: node.name):
        number = rows.node_ids.get((delta.cluster, inventory.name))
        stored = None if number is None else rows.nodes.get(number)
        if stored is None:
            yield _add(rows, delta, inventory, number=NodeId(next(numbers)))
        elif stored.inventory != inventory or not stored.present:
            changed = replace(
                stored,
                inventory=inventory,
                inventory_number=delta.number,
                present=True,
                revision=stored.revision + 1,
            )
            rows.nodes.put(stored.id, changed)
            yield stored.id


def _add(rows: Rows, delta: InventoryDelta, inventory: NodeInventory, *, number: NodeId) -> NodeId:
    rows.node_ids.put((delta.cluster, inventory.name), number)
    node = Node(number, delta.cluster, inventory, inventory_number=delta.number)
    rows.nodes.put(number, node)
    return number


def _is_gone(node: Node, delta: InventoryDelta, listed: set[str]) -> bool:
    name = node.inventory.name
    return node.present and name not in listed and (delta.full or name in delta.gone)


def _mark_gone(rows: Rows, delta: InventoryDelta, gone: list[Node]) -> Iterator[NodeId]:
    for node in gone:
        marked = replace(
            node, present=False, inventory_number=delta.number, revision=node.revision + 1
        )
        rows.nodes.put(node.id, marked)
        yield node.id


def _clear_suspicions(rows: Rows, delta: InventoryDelta) -> Iterator[NodeId]:
    """An inventory is the agent's word on all of its nodes, those too that it does not list."""
    for number, node in list(rows.nodes.items()):
        suspected = 0 <= node.suspect_since < delta.number
        if node.cluster == delta.cluster and node.present and suspected:
            cleared = replace(
                node,
                inventory_number=delta.number,
                suspect_since=-1,
                revision=node.revision + 1,
            )
            rows.nodes.put(number, cleared)
            yield number
