"""Nodes as their agents report them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from atoll.adapters.postgres.live import add_changes
from atoll.adapters.postgres.sql import Record, Sql
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.messages import ChangeKind
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.ports.store.dispatch import InventoryDelta
from atoll.wire.inventory import encode_node

HOLD: Final = """
SELECT inventory_number FROM sessions WHERE cluster = $1 AND session_epoch = $2
FOR NO KEY UPDATE
"""
KNOWN: Final = "SELECT id, name, inventory, present FROM nodes WHERE cluster = $1"
KNOWN_NAMED: Final = f"{KNOWN} AND name = ANY($2::text[])"
# Others lock nodes by their ids too; what is only compared is not locked.
LOCK: Final = """
SELECT id FROM nodes
WHERE id = ANY($2::bigint[]) OR (cluster = $1 AND suspect_since >= 0 AND suspect_since < $3)
ORDER BY id FOR NO KEY UPDATE
"""
PUT: Final = """
INSERT INTO nodes AS n (
    cluster, inventory_number, name, inventory, up, cpu_milli, memory_bytes, kinds, broken, devices
)
SELECT u.cluster, $2, u.name, u.inventory, u.up, u.cpu_milli, u.memory_bytes, u.kinds::text[],
    u.broken::integer[], u.devices::jsonb
FROM unnest(
    $1::text[], $3::text[], $4::bytea[], $5::boolean[], $6::bigint[], $7::bigint[], $8::text[],
    $9::text[], $10::text[]
) AS u(cluster, name, inventory, up, cpu_milli, memory_bytes, kinds, broken, devices)
ON CONFLICT (cluster, name) DO UPDATE SET inventory_number = excluded.inventory_number,
    inventory = excluded.inventory, up = excluded.up, cpu_milli = excluded.cpu_milli,
    memory_bytes = excluded.memory_bytes, kinds = excluded.kinds, broken = excluded.broken,
    devices = excluded.devices, present = true, revision = n.revision + 1
RETURNING id
"""
GONE: Final = """
UPDATE nodes SET present = false, inventory_number = $2, revision = revision + 1
WHERE id = ANY($1::bigint[]) RETURNING id
"""
# An inventory is the agent's word on all of its nodes, those too that it need not list again.
CLEAR: Final = """
UPDATE nodes SET inventory_number = $2, suspect_since = -1, revision = revision + 1
WHERE cluster = $1 AND suspect_since >= 0 AND suspect_since < $2 AND present RETURNING id
"""
SET_NUMBER: Final = "UPDATE sessions SET inventory_number = $2 WHERE cluster = $1"


async def put_inventory(sql: Sql, delta: InventoryDelta) -> bool:
    """Write what differs; False when the session was taken over. An older number is left out."""
    number = await sql.value(HOLD, delta.cluster, delta.session_epoch)
    if number is None:
        return False
    if delta.number < number:
        return True
    known = await _known(sql, delta)
    changed = [node for node in delta.nodes if _differs(node, known.get(node.name))]
    gone = [row["id"] for row in _gone(delta, known)]
    stored = [known[node.name]["id"] for node in changed if node.name in known]
    await sql.rows(LOCK, delta.cluster, [*stored, *gone], delta.number)
    touched = [
        *await _put(sql, delta, changed),
        *(await sql.rows(GONE, gone, delta.number) if gone else ()),
        *await sql.rows(CLEAR, delta.cluster, delta.number),
    ]
    await sql.run(SET_NUMBER, delta.cluster, delta.number)
    if ids := sorted({row["id"] for row in touched}):
        await sql.run(add_changes((ChangeKind.NODES,)), ids, None)
    return True


async def add_nodes(sql: Sql, nodes: Sequence[tuple[ClusterName, NodeInventory]]) -> list[int]:
    """Nodes that no agent has spoken of; their numbers."""
    columns = zip(*(_values(node) for _, node in nodes), strict=True)
    clusters = [cluster for cluster, _ in nodes]
    return [row["id"] for row in await sql.rows(PUT, clusters, 0, *map(list, columns))]


async def _known(sql: Sql, delta: InventoryDelta) -> dict[str, Record]:
    if delta.full:
        rows = await sql.rows(KNOWN, delta.cluster)
    else:
        names = [*(node.name for node in delta.nodes), *delta.gone]
        rows = await sql.rows(KNOWN_NAMED, delta.cluster, names)
    return {row["name"]: row for row in rows}


def _differs(node: NodeInventory, row: Record | None) -> bool:
    return row is None or not row["present"] or row["inventory"] != encode_node(node)


def _gone(delta: InventoryDelta, known: dict[str, Record]) -> Iterable[Record]:
    listed = {node.name for node in delta.nodes}
    names = known.keys() - listed if delta.full else set(delta.gone) - listed
    return (known[name] for name in names if name in known and known[name]["present"])


async def _put(sql: Sql, delta: InventoryDelta, nodes: Sequence[NodeInventory]) -> Sequence[Record]:
    if not nodes:
        return []
    columns = zip(*(_values(node) for node in sorted(nodes, key=_name)), strict=True)
    return await sql.rows(PUT, [delta.cluster] * len(nodes), delta.number, *map(list, columns))


def _name(node: NodeInventory) -> str:
    return node.name


def _values(node: NodeInventory) -> tuple[object, ...]:
    return (
        node.name, encode_node(node), node.up, node.cpu_milli, node.memory_bytes,
        _text_array(_kinds(node)),
        "{" + ",".join(str(d.index) for d in node.devices if not d.healthy) + "}",
        json.dumps(_offer(node)),
    )  # fmt: skip


def _kinds(node: NodeInventory) -> list[str]:
    """Kinds by the devices' indexes; the index is what a grant names."""
    kinds = [""] * (1 + max((device.index for device in node.devices), default=-1))
    for device in node.devices:
        kinds[device.index] = device.kind
    return kinds


def _offer(node: NodeInventory) -> dict[str, tuple[int, int]]:
    """By kind: devices, and blocks of the healthy ones that local work leaves free."""
    local = dict(node.local_use.blocks)
    offer: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for device in node.devices:
        devices, blocks = offer[device.kind]
        usable = BLOCKS_PER_DEVICE - local.get(device.index, 0) if device.healthy else 0
        offer[device.kind] = (devices + 1, blocks + usable)
    return dict(offer)


def _text_array(texts: Iterable[str]) -> str:
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in escaped) + "}"


async def read_inventory(sql: Sql, cluster: ClusterName) -> Sequence[Record]:
    """Present nodes of a cluster."""
    return await sql.rows(
        "SELECT name, inventory FROM nodes WHERE cluster = $1 AND present", cluster
    )
