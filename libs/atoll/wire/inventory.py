"""Inventories, and the hash by which agent and dispatch see that they hold the same one."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple, fields
from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from atoll.api.common.v1 import common_pb2
from atoll.core.model.inventory import Device, LocalUse, NodeInventory
from atoll.wire.enums import WireError
from atoll.wire.shape import pairs

HASH_BYTES: Final = 32
CACHED_NODES: Final = 1 << 14
_DEVICES: Final = [field.name for field in fields(NodeInventory)].index("devices")


def node_to_proto(node: NodeInventory) -> common_pb2.NodeInventory:
    """One node as its agent describes it."""
    proto = common_pb2.NodeInventory(
        name=node.name,
        cpu_milli=node.cpu_milli,
        memory_bytes=node.memory_bytes,
        devices=[_device_to_proto(device) for device in node.devices],
        labels=dict(node.labels),
        domains=[common_pb2.Domain(level=level, name=name) for level, name in node.domains],
        up=node.up,
        address=node.address,
    )
    if node.local_use != LocalUse():
        proto.local_use.CopyFrom(_local_use_to_proto(node.local_use))
    return proto


def node_from_proto(proto: common_pb2.NodeInventory) -> NodeInventory:
    """One node as its agent describes it."""
    return NodeInventory(
        name=proto.name,
        cpu_milli=proto.cpu_milli,
        memory_bytes=proto.memory_bytes,
        devices=tuple(_device_from_proto(device) for device in proto.devices),
        labels=pairs(proto.labels),
        domains=tuple((domain.level, domain.name) for domain in proto.domains),
        up=proto.up,
        address=proto.address,
        local_use=_local_use_from_proto(proto.local_use),
    )


def encode_node(node: NodeInventory) -> bytes:
    """The node's bytes, as a row keeps them; the same for equal nodes."""
    return node_to_proto(node).SerializeToString(deterministic=True)


@lru_cache(maxsize=CACHED_NODES)
def decode_node(data: bytes) -> NodeInventory:
    """The node that `encode_node` wrote; raises WireError."""
    try:
        return node_from_proto(common_pb2.NodeInventory.FromString(data))
    except DecodeError as error:
        raise WireError(f"node: {error}") from error


def inventory_hash(nodes: Mapping[str, NodeInventory]) -> bytes:
    """32 bytes, whatever the order of the nodes.

    It is a sum over the nodes, so whoever applies a delta may add and take away single nodes:
    `combined(total, add=…, remove=…)`.
    """
    return combined(bytes(HASH_BYTES), add=tuple(nodes.values()))


def combined(
    total: bytes, *, add: tuple[NodeInventory, ...] = (), remove: tuple[NodeInventory, ...] = ()
) -> bytes:
    """An inventory's hash after nodes came and went; a changed node does both."""
    number = int.from_bytes(total, "big") + sum(map(node_hash, add)) - sum(map(node_hash, remove))
    return (number % (1 << 8 * HASH_BYTES)).to_bytes(HASH_BYTES, "big")


@lru_cache(maxsize=CACHED_NODES)
def node_hash(node: NodeInventory) -> int:
    """A node's summand. Over the fields, not protobuf bytes, which two versions may write apart."""
    told = list(astuple(node))
    told[_DEVICES] = [_told(device) for device in told[_DEVICES]]
    text = json.dumps(told, ensure_ascii=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def _told(device: tuple[object, ...]) -> tuple[object, ...]:
    # A field that came later is left out while it says nothing, as older versions know none.
    return device if device[-1] else device[:-1]


def _device_to_proto(device: Device) -> common_pb2.Device:
    return common_pb2.Device(
        index=device.index,
        kind=device.kind,
        memory_bytes=device.memory_bytes,
        uuid=device.uuid,
        healthy=device.healthy,
        mig=device.mig,
        mig_dynamic=device.mig_dynamic,
        mig_instances=[
            common_pb2.MigInstance(profile=profile, start=start, uuid=uuid)
            for profile, start, uuid in device.mig_instances
        ],
    )


def _device_from_proto(proto: common_pb2.Device) -> Device:
    return Device(
        index=proto.index,
        kind=proto.kind,
        memory_bytes=proto.memory_bytes,
        uuid=proto.uuid,
        healthy=proto.healthy,
        mig=proto.mig,
        mig_dynamic=proto.mig_dynamic,
        mig_instances=tuple(
            (instance.profile, instance.start, instance.uuid) for instance in proto.mig_instances
        ),
    )


def _local_use_to_proto(use: LocalUse) -> common_pb2.LocalUse:
    return common_pb2.LocalUse(
        cpu_milli=use.cpu_milli, memory_bytes=use.memory_bytes, blocks=dict(use.blocks)
    )


def _local_use_from_proto(proto: common_pb2.LocalUse) -> LocalUse:
    return LocalUse(
        cpu_milli=proto.cpu_milli,
        memory_bytes=proto.memory_bytes,
        blocks=tuple(sorted(proto.blocks.items())),
    )
