"""Reads the openb traces (Alibaba GPU cluster 2023): nodes, and lists of pods.

Nodes: sn, cpu_milli, memory_mib, gpu, model. Pods: name, cpu_milli, memory_mib, num_gpu,
gpu_milli and, in some lists, gpu_spec: models of which one will do, between bars. A request
of one GPU may be a part of it; of several it is always of whole ones. Files may be gzipped.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atoll.sim.readers.table import Row, read_table, wrong

MILLI: Final = 1000
"""Of a whole GPU."""
MILLI_PER_BLOCK: Final = 10
MOST_CPU_MILLI: Final = 1e12
MOST_MIB: Final = 1e12
MOST_GPUS: Final = 256
"""Of one machine."""
MOST_ASKED: Final = 1_000_000
_NODE: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


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
    known: set[str] = set()

    def node(row: Row) -> TraceNode:
        found = _node(row)
        if found.name in known:
            raise ValueError(f"sn is {found.name}, as of a node before")
        known.add(found.name)
        return found

    nodes = read_table(path, _NODE, field="nodes", parse=node)
    if not nodes:
        raise wrong("nodes", f"{path.name} holds nothing")
    if not any(each.gpus for each in nodes):
        raise wrong("nodes", f"{path.name}: no node in it has a GPU")
    return nodes


def read_pods(path: Path) -> list[Pod]:
    """The pods of a file, in its order; InvalidInput says what is wrong with it."""
    pods = read_table(path, _POD, field="pods", parse=_pod)
    if not pods:
        raise wrong("pods", f"{path.name} holds nothing")
    if not any(each.asked_milli for each in pods):
        raise wrong("pods", f"{path.name}: no pod in it asks for a GPU")
    return pods


def _node(row: Row) -> TraceNode:
    gpus = row.whole("gpu", most=MOST_GPUS)
    model = row.text("model") if gpus else row.or_empty("model")
    return TraceNode(row.text("sn"), *_sizes(row), gpus, model)


def _pod(row: Row) -> Pod:
    gpus = row.whole("num_gpu", most=MOST_ASKED)
    milli = row.whole("gpu_milli", least=1, most=MILLI) if gpus else 0
    if gpus > 1 and milli != MILLI:
        raise ValueError(f"gpu_milli is {milli}: several GPUs, and not whole ones")
    if milli % MILLI_PER_BLOCK:
        raise ValueError(f"gpu_milli is {milli}, not a whole percent")
    models = tuple(name for name in row.or_empty("gpu_spec").split("|") if name)
    return Pod(row.text("name"), *_sizes(row), gpus, milli, models)


def _sizes(row: Row) -> tuple[int, int]:
    cpu = row.whole("cpu_milli", most=MOST_CPU_MILLI)
    return cpu, row.whole("memory_mib", most=MOST_MIB)
