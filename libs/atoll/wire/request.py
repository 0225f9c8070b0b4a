"""What the scheduler needs to know of a job, as canonical bytes.

A request is written as a spec that has nothing else. Equal requests give equal bytes, and equal
bytes give the same object again: a queue of a million jobs has few shapes.
"""

from functools import lru_cache

from atoll.api.common.v1 import common_pb2
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.spec import OnLost
from atoll.wire.shape import shape_from_proto, shape_to_proto
from atoll.wire.spec import ON_LOST, parse_spec, topology_from_proto, topology_to_proto

CACHED_REQUESTS = 1 << 16
CACHED_BYTES = 4096
"""Larger requests are rare, and are not kept: what is cached must stay small."""


def encode_request(request: GangRequest) -> bytes:
    """Canonical bytes of a request."""
    proto = common_pb2.JobSpec(groups=[_group_to_proto(group) for group in request.groups])
    if request.topology is not None:
        proto.topology.CopyFrom(topology_to_proto(request.topology))
    if request.needs_guard:
        proto.on_lost = ON_LOST[OnLost.REQUEUE]
    return proto.SerializeToString(deterministic=True)


def decode_request(data: bytes) -> GangRequest:
    """The request that `encode_request` wrote; raises WireError."""
    return _cached(data) if len(data) <= CACHED_BYTES else _decoded(data)


@lru_cache(maxsize=CACHED_REQUESTS)
def _cached(data: bytes) -> GangRequest:
    return _decoded(data)


def _decoded(data: bytes) -> GangRequest:
    proto = parse_spec(data)
    return GangRequest(
        groups=tuple(_group_from_proto(group) for group in proto.groups),
        topology=topology_from_proto(proto.topology) if proto.HasField("topology") else None,
        needs_guard=proto.on_lost == ON_LOST[OnLost.REQUEUE],
    )


def _group_to_proto(group: GroupRequest) -> common_pb2.TaskGroup:
    return common_pb2.TaskGroup(
        count=group.count,
        min_count=group.min_count,
        shapes=[shape_to_proto(shape) for shape in group.shapes],
    )


def _group_from_proto(proto: common_pb2.TaskGroup) -> GroupRequest:
    return GroupRequest(
        count=proto.count,
        min_count=proto.min_count,
        shapes=tuple(shape_from_proto(shape) for shape in proto.shapes),
    )
