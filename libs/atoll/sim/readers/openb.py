"""Reads the openb traces (Alibaba GPU cluster 2023): nodes, and lists of pods.

Nodes: sn, cpu_milli, memory_mib, gpu, model. Pods: name, cpu_milli, memory_mib, num_gpu,
gpu_milli and, in some lists, gpu_spec: models of which one will do, between bars. A request
of one GPU may be a part of it; of several it is always of whole ones. Files may be gzipped.
"""

import csv
import gzip
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from atoll.core.model.errors import FieldViolation, InvalidInput

MILLI: Final = 1000
"""Of a whole GPU."""
MILLI_PER_BLOCK: Final = 10

T = TypeVar("T")
Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A machine."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A request."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    """Of each GPU; 0 when there is none."""
    models: tuple[str, ...] = ()
    """One of these; empty: any."""

    @property
    def asked_milli(self) -> int:
        """Over all its GPUs."""
        return self.gpus * self.gpu_milli


def read_nodes(path: Path) -> list[TraceNode]:
    """The machines of a file, in its order; InvalidInput says what is wrong with it."""
    return _read(path, "nodes", parse=_node)


def read_pods(path: Path) -> list[Pod]:
    """The pods of a file, in its order; InvalidInput says what is wrong with it."""
    return _read(path, "pods", parse=_pod)


def _node(row: Row) -> TraceNode:
    return TraceNode(
        row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"]
    )


def _pod(row: Row) -> Pod:
    gpus = int(row["num_gpu"])
    milli = int(row["gpu_milli"]) if gpus else 0
    if gpus and not 0 < milli <= MILLI:
        raise ValueError(f"gpu_milli is {milli}, not 1 to {MILLI}")
    if gpus > 1 and milli != MILLI:
        raise ValueError("several GPUs, and not whole ones")
    if milli % MILLI_PER_BLOCK:
        raise ValueError(f"gpu_milli is {milli}, not a whole percent")
    models = tuple(name for name in (row.get("gpu_spec") or "").split("|") if name)
    return Pod(row["name"], int(row["cpu_milli"]), int(row["memory_mib"]), gpus, milli, models)


def _read(path: Path, field: str, *, parse: Callable[[Row], T]) -> list[T]:
    found: list[T] = []
    try:
        for row in csv.DictReader(io.StringIO(_text(path))):
            found.append(parse(row))  # noqa: PERF401 - the count tells the line
    except KeyError as error:
        raise _wrong(field, f"{path}: no column {error}") from error
    except (ValueError, TypeError) as error:
        raise _wrong(field, f"{path}, line {len(found) + 2}: {error}") from error
    except (OSError, EOFError) as error:
        raise _wrong(field, f"cannot read {path}: {error}") from error
    if not found:
        raise _wrong(field, f"{path} holds nothing")
    return found


def _text(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def _wrong(field: str, message: str) -> InvalidInput:
    return InvalidInput((FieldViolation(field, message),))
