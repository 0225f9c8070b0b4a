"""The environment of a run: who it is, where its fellows are, which devices are its own."""

import fnmatch
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from atoll.core.model.ids import attempt_name, job_of
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceGrant
from atoll.ports.backend import StartOrder

PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR",
    "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "NVIDIA_*", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip
"""What runs get of the agent's own environment; the rest may be secrets of the agent."""
DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PORTS_BEGIN: Final = 20_000
PORTS: Final = 10_000
"""Below the ports that systems hand out by themselves."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt runs: the node as it is, and its meeting point."""

    node: NodeInventory
    master_port: int


def inherited(extra: Iterable[str]) -> dict[str, str]:
    """What a run gets of the agent's environment."""
    patterns = (*PASSED, *extra)
    kept = {
        key: value
        for key, value in os.environ.items()
        if any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)
    }
    return {"PATH": DEFAULT_PATH} | kept


def master_ports(order: StartOrder) -> Iterator[int]:
    """Where rank 0 listens: the same on every node and at every look, if the first is free."""
    first = int(order.attempt * 2_654_435_761 % PORTS)
    return (PORTS_BEGIN + (first + step) % PORTS for step in range(PORTS))


def environment(
    order: StartOrder, task: TaskPlacement, place: Place, *, base: Mapping[str, str]
) -> dict[str, str]:
    """All of a task's environment. What names its identity and its devices is not the user's."""
    group = order.spec.groups[task.group]
    meeting = _meeting(order, task, place)
    return (
        dict(base)
        | meeting
        | dict(group.envs)
        | dict(order.spec.secrets)
        | _identity(order, task, place)
        | _devices(task, place.node)
    )


def members(order: StartOrder, place: Place) -> str:
    """Who belongs to a run, for those that change their number while they run: a JSON text."""
    ranks = _by_rank(order.tasks)
    who = [
        {"rank": task.rank, "node": task.node_name, "host": _host(order, task, place)}
        for task in ranks
    ]
    return json.dumps({"world_size": len(ranks), "members": who})


def _identity(order: StartOrder, task: TaskPlacement, place: Place) -> dict[str, str]:
    spec, ranks = order.spec, _by_rank(order.tasks)
    here = [other.rank for other in ranks if other.node_name == task.node_name]
    env = {
        "ATOLL_JOB_ID": str(job_of(order.attempt)),
        "ATOLL_JOB_NAME": spec.name,
        "ATOLL_ATTEMPT": attempt_name(order.attempt),
        "ATOLL_CLUSTER": order.cluster,
        "ATOLL_GROUP": spec.groups[task.group].name,
        "ATOLL_RANK": str(task.rank),
        "ATOLL_NODE_RANK": str(task.rank),
        "ATOLL_LOCAL_RANK": str(here.index(task.rank)),
        "ATOLL_WORLD_SIZE": str(len(ranks)),
        "ATOLL_NODE": task.node_name,
        "ATOLL_HOSTS": ",".join(_host(order, other, place) for other in ranks),
        "ATOLL_PORTS": ",".join(map(str, spec.ports)),
    }
    if spec.array_id is not None:
        env["ATOLL_ARRAY_ID"] = str(spec.array_id)
        env["ATOLL_ARRAY_INDEX"] = str(spec.array_index)
    if order.trace:
        env["TRACEPARENT"] = order.trace
    return env


def _meeting(order: StartOrder, task: TaskPlacement, place: Place) -> dict[str, str]:
    """How members find each other. One member is one node to torchrun, which reads PET_*."""
    ranks = _by_rank(order.tasks)
    address, port = _host(order, ranks[0], place), str(place.master_port)
    env = {
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "PET_NNODES": str(len(ranks)),
        "PET_NODE_RANK": str(task.rank),
        "PET_NPROC_PER_NODE": str(max(1, len(task.devices))),
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": port,
    }
    if len(ranks) > 1:
        env |= {"RANK": str(task.rank), "WORLD_SIZE": str(len(ranks))}
    return env


def _devices(task: TaskPlacement, node: NodeInventory) -> dict[str, str]:
    """Which devices a task sees. One without any sees none, on a node that has some."""
    if not node.devices:
        return {}
    found = {device.index: device for device in node.devices}
    visible = [name for grant in task.devices for name in _visible(found[grant.index], grant)]
    env = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(visible),
        "ATOLL_DEVICES": ",".join(str(grant.index) for grant in task.devices),
    }
    share = task.devices[0] if len(task.devices) == 1 else None
    if share is not None and 0 < share.blocks < BLOCKS_PER_DEVICE:
        limit = found[share.index].memory_bytes * share.blocks // BLOCKS_PER_DEVICE
        env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(share.blocks)
        env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={limit >> 20}M"
    return env


def _visible(device: Device, grant: DeviceGrant) -> Sequence[str]:
    if not grant.slice_mask:
        return (device.uuid or str(device.index),)
    return tuple(uuid for _, uuid in instances(device, grant))


def instances(device: Device, grant: DeviceGrant) -> list[tuple[int, str]]:
    """(start, UUID) of the MIG instances that a grant stands for."""
    return [
        (start, uuid)
        for profile, start, uuid in device.mig_instances
        if profile == grant.profile and grant.slice_mask >> start & 1
    ]


def _by_rank(tasks: Iterable[TaskPlacement]) -> list[TaskPlacement]:
    return sorted(tasks, key=lambda task: task.rank)


def _host(order: StartOrder, task: TaskPlacement, place: Place) -> str:
    here = place.node.address if task.node_name == place.node.name else ""
    return order.addresses.get(task.node_name) or here or task.node_name
