"""What one task takes: shapes and device requests."""

from collections.abc import Mapping

from atoll.api.common.v1 import common_pb2
from atoll.core.model.resources import DeviceRequest, TaskShape


def shape_to_proto(shape: TaskShape) -> common_pb2.TaskShape:
    """A task's shape."""
    return common_pb2.TaskShape(
        cpu_milli=shape.cpu_milli,
        memory_bytes=shape.memory_bytes,
        device=None if shape.device is None else device_request_to_proto(shape.device),
        labels=dict(shape.labels),
        labels_not=[common_pb2.Label(key=key, value=value) for key, value in shape.labels_not],
    )


def shape_from_proto(proto: common_pb2.TaskShape) -> TaskShape:
    """A task's shape."""
    device = device_request_from_proto(proto.device) if proto.HasField("device") else None
    return TaskShape(
        cpu_milli=proto.cpu_milli,
        memory_bytes=proto.memory_bytes,
        device=device,
        labels=pairs(proto.labels),
        labels_not=tuple(sorted({(label.key, label.value) for label in proto.labels_not})),
    )


def device_request_to_proto(request: DeviceRequest) -> common_pb2.DeviceRequest:
    """A device request."""
    return common_pb2.DeviceRequest(
        kind=request.kind,
        count=request.count,
        blocks=request.blocks,
        profile=request.profile,
        memory_bytes=request.memory_bytes,
    )


def device_request_from_proto(proto: common_pb2.DeviceRequest) -> DeviceRequest:
    """A device request."""
    return DeviceRequest(
        kind=proto.kind,
        count=proto.count,
        blocks=proto.blocks,
        profile=proto.profile,
        memory_bytes=proto.memory_bytes,
    )


def pairs(entries: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """A map as the model keeps it: sorted by key."""
    return tuple(sorted(entries.items()))
