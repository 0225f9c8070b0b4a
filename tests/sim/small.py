"""Small scenarios, and how tests run them."""

import tempfile
from pathlib import Path
from typing import Any

from atoll.runtime import logs
from atoll.sim.scenario import Scenario
from atoll.sim.service.loop import run
from atoll.sim.service.simulation import Result, Simulation
from atoll.sim.workload import works_of

H100 = {"kind": "H100", "count": 8, "memory": "80Gi"}


def cluster(name: str, nodes: int = 3, **more: Any) -> dict[str, Any]:
    group = {"name": "n", "count": nodes, "cpus": 64, "memory": "512Gi", "devices": H100} | more
    return {"name": name, "nodes": [group]}


def scenario(*faults: dict[str, Any], **more: Any) -> Scenario:
    """Two clusters, thirty jobs in twenty minutes, and what goes wrong."""
    jobs = {
        "jobs": 30,
        "over": "20m",
        "run": {"median": "8m", "sigma": 0.8, "most": "20m"},
        "sizes": {0.5: 0.2, 1: 0.3, 8: 0.3, 16: 0.2},
        "cpus": 4,
        "memory": "16GiB",
        "checkpoint": "1m",
        "restart_cost": "10s",
        "retries": 20,
        "requeue": 0.7,
    }
    given = {
        "seed": 11,
        "length": "25m",
        "settle": "1d",
        "clusters": [cluster("north"), cluster("south")],
        "synthetic": [jobs | more.pop("jobs", {})],
        "faults": list(faults),
    }
    return Scenario.model_validate(given | more)


def simulate(given: Scenario) -> Result:
    logs.configure("critical", form="console", service="sim")
    with tempfile.TemporaryDirectory() as folder:
        return run(Simulation(given, works_of(given), Path(folder)).run())
