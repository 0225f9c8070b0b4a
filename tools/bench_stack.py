"""The stack that is measured: a throw-away `atoll up` with one simulated cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from atoll.client.endpoints import endpoints_file, read_endpoints
from atoll.embedded.state import Report, read_report
from tools.demo_stack import NAME, Stack, stack

UP_WITHIN_S = 360.0
"""Kernels are compiled the first time."""
NODES_PER_RACK = 32
NODE = {
    "name": "h100",
    "cpus": 128,
    "memory": "2Ti",
    "devices": {"kind": "H100", "count": 8, "memory": "80Gi"},
    "topology": {"rack": NODES_PER_RACK},
}


@dataclass(frozen=True, slots=True)
class Running:
    """A stack that serves."""

    endpoint: str
    dsn: str
    report: Report

    def pids(self) -> dict[str, int]:
        """Its processes by name, the supervisor's too."""
        parts = {part.name: part.pid for part in self.report.parts if part.pid is not None}
        return {**parts, "supervisor": self.report.pid}


@contextmanager
def running(nodes: int) -> Iterator[Running]:
    """One with a simulated cluster of so many nodes of 8 devices; it is gone afterwards."""
    with stack() as made:
        clusters = made.write("clusters.yaml", yaml.safe_dump(described(nodes)))
        done = made.atoll("up", "--clusters", str(clusters), timeout_s=UP_WITHIN_S)
        if done.returncode:
            raise RuntimeError(f"atoll up failed:\n{done.stdout}{done.stderr}")
        yield _found(made)


def described(nodes: int) -> dict[str, Any]:
    """The clusters file."""
    cluster = {"levels": ["rack"], "nodes": [NODE | {"count": nodes}]}
    return {"clusters": [{"name": "sim", "backend": "simulated", "cluster": cluster}]}


def _found(made: Stack) -> Running:
    data = made.folder / NAME / "data"
    endpoints, report = read_endpoints(endpoints_file(NAME)), read_report(data / "report.json")
    if endpoints is None or report is None:
        raise RuntimeError("atoll up left no endpoints")
    return Running(endpoints.submission, _dsn(data / "config" / "submission.yaml"), report)


def _dsn(config: Path) -> str:
    dsn: str = yaml.safe_load(config.read_text())["dsn"]
    return dsn
