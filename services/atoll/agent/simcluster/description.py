"""Reads what a simulated cluster is made of: node groups in YAML or JSON, or a CSV of nodes."""

import csv
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from atoll.agent.described import BadDescription, as_list, as_mapping, parse_amount, parse_devices
from atoll.core.model.inventory import Device, NodeInventory

GIB: Final = 1 << 30
MOST_NODES: Final = 100_000
DEVICE_GIB: Final = {"V100M32": 32, "A10": 24, "G2": 24, "G3": 80}
"""Memory of the models in CSV node lists that do not have DEFAULT_DEVICE_GIB."""
DEFAULT_DEVICE_GIB: Final = 16
GROUP_KEYS: Final = frozenset({
    "name", "count", "cpus", "memory", "devices", "labels", "topology", "address",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Described:
    """A cluster as it is when nothing is broken."""

    nodes: tuple[NodeInventory, ...]
    levels: tuple[str, ...]


def read_cluster(path: Path, cluster: str) -> Described:
    """The cluster that a file describes; raises BadDescription.

    Every node gets the label `cluster`.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadDescription(f"{path}: {error.strerror}") from None
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    try:
        return _described(path, data, {"cluster": cluster})
    except (yaml.YAMLError, ValueError, TypeError, KeyError) as error:
        raise BadDescription(f"{path}: {error}") from error


def described_by(document: object, cluster: str) -> Described:
    """The cluster that a document, as a file would have it, describes; raises BadDescription."""
    try:
        return _from_document(document, {"cluster": cluster}, cluster)
    except (ValueError, TypeError, KeyError) as error:
        raise BadDescription(f"{cluster}: {error}") from error


def _described(path: Path, data: bytes, labels: Mapping[str, str]) -> Described:
    if ".csv" in path.suffixes:
        return Described(tuple(_csv_nodes(data.decode(), labels)), ())
    return _from_document(yaml.safe_load(data), labels, str(path))


def _from_document(document: object, base: Mapping[str, str], where: str) -> Described:
    whole = as_mapping(document, where, frozenset({"levels", "labels", "nodes"}))
    labels = dict(base) | _labels(whole.get("labels"))
    groups = [
        as_mapping(entry, f"{where}: nodes[{place}]", GROUP_KEYS)
        for place, entry in enumerate(as_list(whole.get("nodes")))
    ]
    levels = tuple(whole.get("levels") or _levels_of(groups))
    nodes = [
        node
        for place, group in enumerate(groups)
        for node in _group_nodes(group, f"{where}: nodes[{place}]", labels=labels, levels=levels)
    ]
    _check(nodes, where)
    return Described(tuple(sorted(nodes, key=lambda node: node.name)), levels)


def _group_nodes(
    group: Mapping[str, Any], where: str, *, labels: Mapping[str, str], levels: Sequence[str]
) -> Iterator[NodeInventory]:
    name, count = str(group.get("name", "node")), int(group.get("count", 1))
    cpu_milli = int(float(group.get("cpus", 1)) * 1000)
    memory_bytes = parse_amount(group.get("memory", "4Gi"), f"{where}.memory")
    devices = parse_devices(group.get("devices"), f"{where}.devices")
    own = tuple(sorted((dict(labels) | _labels(group.get("labels"))).items()))
    sizes = group.get("topology") or {}
    if unknown := set(sizes) - set(levels):
        raise BadDescription(f"{where}.topology: {sorted(unknown)} is not among levels")
    for place in range(count):
        yield NodeInventory(
            name=name if count == 1 else f"{name}-{place:04d}",
            cpu_milli=cpu_milli,
            memory_bytes=memory_bytes,
            devices=devices,
            labels=own,
            domains=tuple(
                (level, f"{name}-{level}-{place // int(sizes[level]):04d}")
                for level in levels
                if level in sizes
            ),
            address=str(group.get("address", "")),
        )


def _csv_nodes(text: str, labels: Mapping[str, str]) -> Iterator[NodeInventory]:
    """Nodes as the openb traces list them: sn, cpu_milli, memory_mib, gpu, model."""
    for row in csv.DictReader(io.StringIO(text)):
        memory_bytes = DEVICE_GIB.get(row["model"], DEFAULT_DEVICE_GIB) * GIB
        yield NodeInventory(
            name=row["sn"],
            cpu_milli=int(row["cpu_milli"]),
            memory_bytes=int(row["memory_mib"]) << 20,
            devices=tuple(
                Device(index, row["model"], memory_bytes) for index in range(int(row["gpu"] or 0))
            ),
            labels=tuple(sorted(labels.items())),
        )


def _check(nodes: Sequence[NodeInventory], where: str) -> None:
    if not 0 < len(nodes) <= MOST_NODES:
        raise BadDescription(f"{where}: {len(nodes)} nodes; there must be 1 to {MOST_NODES}")
    if len({node.name for node in nodes}) < len(nodes):
        raise BadDescription(f"{where}: two nodes have the same name")


def _levels_of(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Without `levels`: those of the groups' topologies, in the order they are written in."""
    return list(dict.fromkeys(level for group in groups for level in group.get("topology") or {}))


def _labels(given: object) -> dict[str, str]:
    return {str(key): str(value) for key, value in as_mapping(given or {}, "labels", None).items()}
