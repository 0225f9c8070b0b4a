"""Reads the node and pod lists of the Alibaba GPU cluster trace of 2023 (openb), plain or gzipped.

Nodes: sn, cpu_milli, memory_mib, gpu, model. Pods: name, cpu_milli, memory_mib, num_gpu, gpu_milli,
gpu_spec, qos, pod_phase, creation_time, deletion_time, scheduled_time; all from gpu_spec on may be
missing. Times are seconds from the start of the trace.
"""

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from atoll.core.model.errors import FieldViolation, InvalidInput

MIB: Final = 1 << 20
WHOLE_MILLI: Final = 1000
_GZIP: Final = b"\x1f\x8b"
_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A machine of the trace; all its devices are of one kind."""

    name: str
    cpu_milli: int
    memory_bytes: int
    devices: int
    kind: str


@dataclass(frozen=True, slots=True)
class TracePod:
    """A job of the trace."""

    name: str
    cpu_milli: int
    memory_bytes: int
    devices: int
    milli: int
    """Thousandths of each device: 1000 for whole ones."""
    kinds: tuple[str, ...]
    """Kinds that it accepts; empty: any."""
    created_s: float
    ran_s: float
    """How long it ran; 0 when the list does not tell."""


def read_nodes(path: Path) -> list[TraceNode]:
    """All nodes; InvalidInput names the line that is wrong."""
    return list(_rows(path, _NODE_COLUMNS, _node))


def read_pods(path: Path, *, limit: int = 0) -> list[TracePod]:
    """The first `limit` pods (0: all), in the order of their creation."""
    pods = _rows(path, _POD_COLUMNS, _pod)
    return sorted(islice(pods, limit or None), key=lambda pod: (pod.created_s, pod.name))


def _rows(
    path: Path, columns: tuple[str, ...], read: Callable[[Mapping[str, str]], RowT]
) -> Iterator[RowT]:
    reader = csv.DictReader(io.StringIO(_text(path), newline=""))
    if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
        raise _invalid(path, f"has no column {', '.join(missing)}")
    for row in reader:
        try:
            yield read(row)
        except (TypeError, ValueError) as error:
            raise _invalid(path, f"line {reader.line_num}: {error}") from None


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise _invalid(path, f"cannot be read: {error}") from None


def _node(row: Mapping[str, str]) -> TraceNode:
    return TraceNode(
        name=row["sn"],
        cpu_milli=int(row["cpu_milli"]),
        memory_bytes=int(row["memory_mib"]) * MIB,
        devices=int(row["gpu"] or 0),
        kind=row["model"] or "",
    )


def _pod(row: Mapping[str, str]) -> TracePod:
    created = _seconds(row, "creation_time")
    begun = _seconds(row, "scheduled_time") or created
    devices, milli = int(row["num_gpu"] or 0), int(row["gpu_milli"] or 0)
    if devices < 0 or not (0 < milli <= WHOLE_MILLI if devices else milli == 0):
        raise ValueError(f"{devices} devices with {milli} thousandths each")
    return TracePod(
        name=row["name"],
        cpu_milli=int(row["cpu_milli"]),
        memory_bytes=int(row["memory_mib"]) * MIB,
        devices=devices,
        milli=milli,
        kinds=tuple(kind for kind in (row.get("gpu_spec") or "").split("|") if kind),
        created_s=created,
        ran_s=max(0.0, _seconds(row, "deletion_time") - begun),
    )


def _seconds(row: Mapping[str, str], column: str) -> float:
    return float(row.get(column) or 0)


def _invalid(path: Path, message: str) -> InvalidInput:
    return InvalidInput((FieldViolation(str(path), message),))
