"""Reads the words of a case: nodes, requests and grants."""

from collections.abc import Iterator

from atoll.core.model.burst import (
    MICROS,
    InstanceId,
    InstanceState,
    Market,
    Offer,
    Rental,
)
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName
from atoll.core.model.inventory import Device, LocalUse, Node, NodeInventory
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.model.spec import Topology
from atoll.core.state.mig import table_for

GIB = 1 << 30
GB = 10**9


def read_node(number: int, cluster: ClusterName, words: list[str]) -> Node:
    values = read_values(words)
    labels = {k.removeprefix("label."): v for k, v in values.items() if k.startswith("label.")}
    levels = [(k, v) for k, v in values.items() if k in ("zone", "block", "rack")]
    inventory = NodeInventory(
        name=f"n{number}",
        cpu_milli=round(float(values.get("cpu", 0)) * 1000),
        memory_bytes=round(float(values.get("mem", 0)) * GIB),
        devices=tuple(_devices(values.get("gpus", ""), mig="mig" in words)),
        labels=tuple(sorted(labels.items())),
        domains=tuple(levels),
        up="down" not in words,
        local_use=LocalUse(cpu_milli=round(float(values.get("local", 0)) * 1000)),
    )
    return Node(
        NodeId(number),
        cluster,
        inventory,
        cordoned="cordoned" in words,
        suspect_since=0 if "suspect" in words else -1,
    )


def _devices(text: str, *, mig: bool) -> Iterator[Device]:
    index = 0
    for part in read_list(text):
        count, _, kind = part.partition("x")
        name, _, memory = kind.partition(":")
        for _ in range(int(count)):
            yield Device(index, name, int(memory) * GB, mig=mig)
            index += 1


def read_request(words: str) -> GangRequest:
    values = read_values(words.split())
    topology = None
    if "same" in values:
        level = values["same"].removesuffix("!")
        topology = Topology(level, required=values["same"].endswith("!"))
    groups = tuple(_group(part) for part in words.split(" + "))
    flags = words.split()
    return GangRequest(groups, topology, needs_guard="guard" in flags, burst="home" not in flags)


def _group(words: str) -> GroupRequest:
    counts = [int(word[1:]) for word in words.split() if word[0] == "x" and word[1:].isdigit()]
    count = counts[0] if counts else 1
    least = int(read_values(words.split()).get("min", count))
    return GroupRequest(count, least, tuple(_shape(part) for part in words.split(" | ")))


def _shape(words: str) -> TaskShape:
    values = read_values(words.split())
    labels = {k.removeprefix("label."): v for k, v in values.items() if k.startswith("label.")}
    return TaskShape(
        cpu_milli=round(float(values.get("cpu", 1)) * 1000),
        memory_bytes=round(float(values.get("mem", 1)) * GIB),
        device=_device(values["gpu"]) if "gpu" in values else None,
        labels=tuple(sorted(labels.items())),
    )


def _device(text: str) -> DeviceRequest:
    kind, _, amount = text.partition(":")
    kind = "" if kind == "*" else kind
    profile, _, count = amount.partition("*")
    if "g." in profile:
        return DeviceRequest(kind, int(count or 1), profile=profile)
    if amount.endswith("gb"):
        return DeviceRequest(kind, 1, blocks=0, memory_bytes=int(amount[:-2]) * GB)
    if float(amount) < 1:
        return DeviceRequest(kind, 1, blocks=round(float(amount) * 100))
    return DeviceRequest(kind, int(amount))


def read_grant(node: Node, text: str) -> DeviceGrant:
    index, _, share = text.partition(":")
    device = node.inventory.devices[int(index)]
    profile, at, start = share.partition("@")
    if not at:
        return DeviceGrant(device.index, blocks=int(share))
    table = table_for(device.kind, device.memory_bytes)
    found = table.find(profile) if table else None
    assert found is not None, f"no profile {profile} on {device.kind}"
    return DeviceGrant(device.index, slice_mask=found.mask(int(start)), profile=profile)


def read_rental(text: str) -> Rental:
    name, state, *words = text.split()
    values = read_values(words)
    price = round(float(values.get("price", 1)) * MICROS)
    queue = values.get("queue")
    return Rental(
        InstanceId(int(name.removeprefix("burst-"))),
        ClusterName(name),
        InstanceState(state),
        Offer("cloud", "eu-1a", "eu", "big", Market.SPOT, 0, 0, price=price),
        jobs=tuple(JobId(int(job)) for job in read_list(values.get("jobs", ""))),
        queue=QueueName(queue) if queue else None,
        ready_at=float(values.get("ready", 300)),
        give_up_at=float(values.get("until", 900)),
        stop_at=float(values.get("stop", 0)),
    )


def read_values(words: list[str]) -> dict[str, str]:
    pairs = (word.partition("=") for word in words if "=" in word)
    values: dict[str, str] = {}
    for key, _, value in pairs:
        values.setdefault(key, value)
    return values


def read_list(text: str) -> list[str]:
    return [part for part in text.split(",") if part]
