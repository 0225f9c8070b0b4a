"""The demo's jobs, and what is to become of each."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from atoll.client.views import JobInfo
from atoll.core.model.lifecycle import JobState

ARRAY = 12
REPLAYED = 40
H100_NODES = 64


@dataclass(frozen=True)
class Want:
    """What is to become of a job, and of all with the same label."""

    title: str
    spec: dict[str, Any]
    state: JobState = JobState.SUCCEEDED
    exit_code: int = 0
    clusters: frozenset[str] = field(default_factory=frozenset)
    """Where it may run; empty: anywhere."""
    nodes: int = 1
    label: str = "demo"
    """Its jobs have this label, with its name when it has a spec."""

    def about(self, job: JobInfo) -> bool:
        """Whether the job is one of its own."""
        if not self.spec:
            return self.label in job.labels
        return job.labels.get(self.label) == str(self.spec["name"])

    def met(self, job: JobInfo) -> bool:
        """Whether it ended as it was to."""
        return (
            job.state is self.state
            and job.exit_code == self.exit_code
            and (not self.clusters or job.cluster in self.clusters)
            and len({task.node_name for task in job.tasks}) == self.nodes
        )


def first_jobs() -> list[Want]:
    """Those that are submitted together."""
    return [
        Want(
            "on this machine",
            _job("hello", run="echo hello from $(hostname), job $ATOLL_JOB_ID", cpus="100m"),
            clusters=frozenset({"local"}),
        ),
        Want(
            "fails with exit code 3",
            _job("fails", run="exit 3", cpus="100m"),
            state=JobState.FAILED,
            exit_code=3,
            clusters=frozenset({"local"}),
        ),
        Want(
            "gang of 16, one block",
            _job("gang", accelerators="H100:8", seconds=6)
            | {"num_nodes": 16, "topology": {"same": "block"}},
            clusters=frozenset({"hopper"}),
            nodes=16,
        ),
        Want(
            "gang of 18, one rack",
            _job("rack", accelerators="B200:2", seconds=5)
            | {"num_nodes": 18, "topology": {"same": "rack"}},
            clusters=frozenset({"nvl"}),
            nodes=18,
        ),
        Want(
            "0.25 of a device",
            _job("quarter", accelerators="H100:0.25", seconds=4),
            clusters=frozenset({"hopper"}),
        ),
        Want(
            "0.75 of a device",
            _job("most", accelerators="H100:0.75", seconds=4),
            clusters=frozenset({"hopper"}),
        ),
        Want(
            "MIG slice 1g",
            _job("slice", accelerators="B200:1g.23gb", seconds=4),
            clusters=frozenset({"nvl"}),
        ),
        Want(
            "two MIG slices 3g",
            _job("slices", accelerators="B200:3g.90gb:2", seconds=4),
            clusters=frozenset({"nvl"}),
        ),
        Want(
            f"array of {ARRAY}",
            _job("array", accelerators="H100:1", seconds=2) | {"array": ARRAY},
            clusters=frozenset({"hopper"}),
        ),
    ]


def probe() -> Want:
    """Finds out where a job like `refused` is placed."""
    return Want(
        "4 A100",
        _job("probe", accelerators="A100:4", seconds=1),
        clusters=frozenset({"hopper", "nvl"}),
    )


def refused(elsewhere: str) -> Want:
    """The same again, when the first choice hides its devices."""
    return Want(
        "4 A100, refused at first",
        _job("refused", accelerators="A100:4", seconds=2),
        clusters=frozenset({elsewhere}),
    )


def never() -> dict[str, Any]:
    """One that no node can ever hold."""
    return _job("never", accelerators="H100:9", seconds=1)


def as_json(spec: dict[str, Any]) -> str:
    """A spec as a file: YAML reads JSON."""
    return json.dumps(spec, indent=1)


def replayed() -> Want:
    """All jobs of the replayed list."""
    return Want(f"{REPLAYED} replayed pods", {}, clusters=frozenset({"hopper"}), label="replay")


def openb_nodes() -> str:
    """The nodes that the list is replayed on, in the form of the openb traces (CSV)."""
    nodes = [f"h100-{number:04},192000,{2 << 20},8,H100" for number in range(H100_NODES)]
    return "\n".join(["sn,cpu_milli,memory_mib,gpu,model", *nodes]) + "\n"


def openb_pods(seed: int = 7) -> str:
    """A small list of pods in the same form."""
    rng = random.Random(seed)
    columns = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        "creation_time,deletion_time,scheduled_time"
    )
    return "\n".join([columns, *_pods(rng)]) + "\n"


def _pods(rng: random.Random) -> Iterator[str]:
    for number in range(REPLAYED):
        gpus, milli = rng.choice([(1, 250), (1, 500), (1, 1000), (2, 1000), (8, 1000), (0, 0)])
        begin = number // 2
        end = begin + rng.randint(2, 6)
        cpu, memory = rng.choice([4000, 8000, 12000]), rng.choice([8192, 16384])
        yield (f"pod-{number:04},{cpu},{memory},{gpus},{milli},,LS,Succeeded,{begin},{end},{begin}")


def _job(
    name: str,
    *,
    accelerators: Any = None,
    run: str = "python train.py",
    cpus: Any = 4,
    seconds: float = 0,
) -> dict[str, Any]:
    resources = {"cpus": cpus} | ({"accelerators": accelerators} if accelerators else {})
    envs = {"ATOLL_SIM_SECONDS": str(seconds)} if seconds else {}
    return {
        "name": name,
        "run": run,
        "resources": resources,
        "envs": envs,
        "labels": {"demo": name},
    }
