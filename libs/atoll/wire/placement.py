"""Placements: tasks on nodes, with their devices."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from atoll.api.agent.v1 import agent_pb2
from atoll.api.common.v1 import common_pb2
from atoll.core.model.ids import NodeId
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.wire.enums import WireError

CACHED_TASKS: Final = 1 << 13
"""Gangs: an attempt's row is read again at each of its reports."""
CACHED_BYTES: Final = 512


def task_to_proto(task: TaskPlacement) -> common_pb2.TaskPlacement:
    """One task on one node."""
    return common_pb2.TaskPlacement(
        group=task.group,
        rank=task.rank,
        node_id=task.node,
        node=task.node_name,
        cpu_milli=task.cpu_milli,
        memory_bytes=task.memory_bytes,
        devices=[grant_to_proto(grant) for grant in task.devices],
    )


def task_from_proto(proto: common_pb2.TaskPlacement) -> TaskPlacement:
    """One task on one node."""
    return TaskPlacement(
        group=proto.group,
        rank=proto.rank,
        node=NodeId(proto.node_id),
        node_name=proto.node,
        cpu_milli=proto.cpu_milli,
        memory_bytes=proto.memory_bytes,
        devices=tuple(grant_from_proto(grant) for grant in proto.devices),
    )


def tasks_from_proto(protos: Iterable[common_pb2.TaskPlacement]) -> tuple[TaskPlacement, ...]:
    """All tasks of a gang."""
    return tuple(task_from_proto(proto) for proto in protos)


def encode_tasks(tasks: Iterable[TaskPlacement]) -> bytes:
    """The tasks of a gang, as a row keeps them."""
    return agent_pb2.Decision(tasks=[task_to_proto(task) for task in tasks]).SerializeToString()


def decode_tasks(data: bytes) -> tuple[TaskPlacement, ...]:
    """The tasks that `encode_tasks` wrote; raises WireError."""
    return _cached(data) if len(data) <= CACHED_BYTES else _decoded(data)


def grant_to_proto(grant: DeviceGrant) -> common_pb2.DeviceGrant:
    """A share of a device."""
    return common_pb2.DeviceGrant(
        index=grant.index, blocks=grant.blocks, slice_mask=grant.slice_mask, profile=grant.profile
    )


def grant_from_proto(proto: common_pb2.DeviceGrant) -> DeviceGrant:
    """A share of a device."""
    return DeviceGrant(
        index=proto.index, blocks=proto.blocks, slice_mask=proto.slice_mask, profile=proto.profile
    )


@lru_cache(maxsize=CACHED_TASKS)
def _cached(data: bytes) -> tuple[TaskPlacement, ...]:
    return _decoded(data)


def _decoded(data: bytes) -> tuple[TaskPlacement, ...]:
    try:
        return tasks_from_proto(agent_pb2.Decision.FromString(data).tasks)
    except DecodeError as error:
        raise WireError(f"tasks: {error}") from error
