"""Reasons in words: what is needed, what is there, and what would help."""

from typing import Final

from atoll.core.model.reason import Reason, ReasonCode
from atoll.core.model.resources import DeviceRequest, TaskShape

_GIB: Final = 1 << 30

_CLUSTER: Final = {
    ReasonCode.NO_CLUSTER: ("is not registered", "start its agent"),
    ReasonCode.CLUSTER_SILENT: ("does not answer", "wait for its agent to come back"),
    ReasonCode.CLUSTER_CORDONED: ("is cordoned", "uncordon it"),
    ReasonCode.CLUSTER_BEHIND: ("is behind with its decisions", "wait for its agent to catch up"),
    ReasonCode.CLUSTER_AVOIDED: ("refused such a job not long ago", "wait, or look at its agent"),
    ReasonCode.ON_LOST_UNSUPPORTED: (
        "cannot stop a run that it has lost",
        "submit with on_lost: hold",
    ),
}
CLUSTER_CODES: Final = frozenset(_CLUSTER)
SHORTAGES: Final = frozenset({
    ReasonCode.CPU_SHORT,
    ReasonCode.MEMORY_SHORT,
    ReasonCode.DEVICES_SHORT,
})

UNCHANGING: Final = frozenset({
    ReasonCode.LABELS_MISMATCH,
    ReasonCode.DEVICE_KIND_ABSENT,
    ReasonCode.PROFILE_ABSENT,
})
"""What waiting does not help against."""

_NODE: Final = {
    ReasonCode.NODE_UNSCHEDULABLE: ("down or cordoned", "uncordon or repair them"),
    ReasonCode.NODE_SUSPECT: ("suspect until a later inventory", "wait for it"),
    ReasonCode.ANTI_AFFINITY: (
        "too close to a job that it is kept apart from",
        "wait for that job to end",
    ),
}


def cluster_reason(code: ReasonCode, cluster: str, nodes: int) -> Reason:
    """Why a whole cluster, or some of its nodes, take nothing of the kind."""
    state, advice = _CLUSTER[code]
    message = f"cluster {cluster} {state} ({_nodes(nodes)})"
    return Reason(code, message, cluster=cluster, count=nodes, help=advice)


def node_reason(code: ReasonCode, shape: TaskShape, *, available: int, nodes: int) -> Reason:
    """What is wrong with some nodes; `available` is the most that one of them has."""
    if code in _NODE:
        state, advice = _NODE[code]
        return Reason(code, f"{state}: {_nodes(nodes)}", count=nodes, help=advice)
    if code is ReasonCode.LABELS_MISMATCH:
        return Reason(code, f"labels {_labels(shape)} missing on {_nodes(nodes)}", count=nodes)
    if code is ReasonCode.CPU_SHORT:
        return _short(code, shape.cpu_milli, available, unit="milli-CPU", nodes=nodes)
    if code is ReasonCode.MEMORY_SHORT:
        return _short(code, shape.memory_bytes, available, unit="bytes", nodes=nodes)
    return _device_reason(code, shape, available=available, nodes=nodes)


def advice(hold_when_empty: int) -> str:
    """What would help where something is short; the nodes that would do if they were empty."""
    if hold_when_empty:
        return f"wait for work to end: {_nodes(hold_when_empty)} would hold it when empty"
    return "ask for less: even empty, none of these nodes holds it"


def gang_reason(code: ReasonCode, needed: int, available: int, *, where: str) -> Reason:
    """Too few tasks fit at once; `where` says in what, such as `one cluster`."""
    message = f"{needed} tasks have to fit in {where}, the best has room for {available} now"
    return Reason(code, message, needed=needed, available=available, unit="tasks")


def spread_reason(needed: int, available: int, *, level: str, bound: int) -> Reason:
    """Too few domains for a group whose tasks are to be spread."""
    message = (
        f"{needed} tasks have to fit in one cluster with at most {bound} in one {level}, "
        f"the best has room for {available} now"
    )
    return Reason(
        ReasonCode.SPREAD_TOO_NARROW,
        message,
        needed=needed,
        available=available,
        unit="tasks",
        help=f"let a {level} have more of them, or ask for fewer",
    )


def too_wide_reason(shape: TaskShape, needed: int, available: int, *, where: str) -> Reason:
    """Even when empty, `where` holds too few of the tasks at once."""
    message = (
        f"needs {needed} tasks with {task_words(shape)} each; {where} has room for {available}"
    )
    return Reason(
        ReasonCode.GANG_TOO_WIDE, message, needed=needed, available=available, unit="tasks"
    )


def together_reason() -> Reason:
    """Every group fits by itself, but not all of them at once."""
    return Reason(
        ReasonCode.GANG_TOO_WIDE, "each task group fits by itself, but not all of them together"
    )


def no_room_reason() -> Reason:
    """It does not fit now, and nobody has looked where exactly."""
    return Reason(
        ReasonCode.NO_ROOM, "it has no place now", help="explain tells what is short where"
    )


def limit_reason(queue: str, *, used: int, limit: int, kind: str = "") -> Reason:
    """A queue is at its limit, of one kind or over all; both numbers in blocks."""
    devices = f"{kind} devices" if kind else "devices"
    return Reason(
        ReasonCode.QUEUE_LIMIT,
        f"queue {queue} holds {used / 100:g} of the {limit / 100:g} {devices} that it may",
        available=max(0, limit - used),
        unit="blocks",
        help="wait for its jobs to end, or raise its limit",
        metadata=(("limit", str(limit)), ("queue", queue), ("used", str(used))),
    )


def device_words(device: DeviceRequest) -> str:
    """Such as `8 H100`, `30 blocks of any device`, `2 slices 1g.10gb of H100`."""
    kind = device.kind or "any device"
    if device.profile:
        return f"{device.count} slices {device.profile} of {kind}"
    if device.memory_bytes:
        return f"{device.memory_bytes / _GIB:.4g} GiB of {kind}"
    return f"{device.count} {kind}" if device.whole else f"{device.blocks} blocks of {kind}"


def task_words(shape: TaskShape) -> str:
    """What one task takes, the devices first."""
    words = [device_words(shape.device)] if shape.device else []
    words.append(amount(shape.cpu_milli, "milli-CPU"))
    return ", ".join([*words, amount(shape.memory_bytes, "bytes")])


def amount(value: int, unit: str) -> str:
    """An amount as people say it."""
    if unit == "bytes":
        return f"{value / _GIB:.4g} GiB"
    if unit == "milli-CPU":
        return f"{value / 1000:g} CPU" + ("s" if value != 1000 else "")
    return f"{value} {unit}"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _short(code: ReasonCode, needed: int, available: int, *, unit: str, nodes: int) -> Reason:
    message = (
        f"less than {amount(needed, unit)} free on {_nodes(nodes)},"
        f" the best has {amount(available, unit)}"
    )
    return Reason(code, message, needed=needed, available=available, unit=unit, count=nodes)


def _device_reason(code: ReasonCode, shape: TaskShape, *, available: int, nodes: int) -> Reason:
    device = shape.device
    if device is None:
        raise ValueError(f"{code} is no reason for a task without devices")
    if code is ReasonCode.DEVICE_KIND_ABSENT:
        form = "in slices" if device.profile else "whole or in blocks"
        kind = device.kind or "device"
        message = f"no {kind} that is handed out {form} on {_nodes(nodes)}"
        return Reason(code, message, count=nodes)
    if code is ReasonCode.PROFILE_ABSENT:
        message = f"no device that can be cut into {device.profile} on {_nodes(nodes)}"
        return Reason(code, message, count=nodes)
    unit = "slices" if device.profile else "devices" if device.whole else "blocks"
    needed = device.count if unit != "blocks" else device.blocks
    message = (
        f"less than {device_words(device)} free on {_nodes(nodes)}, the best has {available} {unit}"
    )
    return Reason(code, message, needed=needed, available=available, unit=unit, count=nodes)


def _labels(shape: TaskShape) -> str:
    wanted = [f"{key}={value}" for key, value in shape.labels]
    shunned = [f"{key}!={value or '*'}" for key, value in shape.labels_not]
    return ", ".join(wanted + shunned)
