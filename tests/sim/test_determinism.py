"""Two runs of one seed are the same, whatever Python hashes strings to."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.sim.small import cluster

SCENARIO = {
    "seed": 21,
    "length": "25m",
    "clusters": [cluster("north"), cluster("south", nodes=2)],
    "queues": [{"name": "prod", "weight": 2}, {"name": "research"}],
    "synthetic": [
        {
            "jobs": 40,
            "over": "20m",
            "run": {"median": "6m", "sigma": 0.8, "most": "20m"},
            "sizes": {0.5: 0.2, 1: 0.3, 8: 0.3, 16: 0.2},
            "queues": {"prod": 0.4, "research": 0.6},
            "classes": {"normal": 0.7, "high": 0.3},
            "retries": 20,
            "cancelled": 0.1,
        }
    ],
    "faults": [
        {"what": "node-death", "every": "5m", "lasts": "3m"},
        {"what": "silent-agent", "every": "10m", "lasts": "2m"},
        {"what": "agent-restart", "every": "10m", "lasts": "30s"},
        {"what": "leader-change", "every": "6m"},
        {"what": "dispatch-death", "every": "8m", "lasts": "30s"},
        {"what": "lost-commit-reply", "every": "90s"},
    ],
}


async def test_two_runs_of_a_seed_are_the_same_step_by_step(tmp_path: Path) -> None:
    given = tmp_path / "scenario.yaml"
    given.write_text(yaml.safe_dump(SCENARIO))
    one, two = await asyncio.gather(
        _run(given, tmp_path / "one.txt", hash_seed="0"),
        _run(given, tmp_path / "two.txt", hash_seed="4711"),
    )
    assert one == two
    assert (tmp_path / "one.txt").read_bytes() == (tmp_path / "two.txt").read_bytes()
    assert one["violation"] is None
    assert one["jobs"] == 40
    assert sum(one["faults"].values()) > 10


async def test_another_seed_is_another_story(tmp_path: Path) -> None:
    given = tmp_path / "scenario.yaml"
    given.write_text(yaml.safe_dump(SCENARIO | {"faults": []}))
    one, two = await asyncio.gather(
        _run(given, tmp_path / "one.txt", "--seed", "1", hash_seed="0"),
        _run(given, tmp_path / "two.txt", "--seed", "2", hash_seed="0"),
    )
    assert (one["seed"], two["seed"]) == (1, 2)
    assert one["events"] != two["events"]


async def _run(given: Path, story: Path, *more: str, hash_seed: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "atoll.cli",
        "sim",
        "run",
        str(given),
        "--story",
        str(story),
        *more,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, told = await process.communicate()
    assert process.returncode == 0, told.decode()
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found
