"""Jobs for agents: short ones unless told."""

from collections.abc import Sequence

from atoll.core.model.ids import AttemptId, JobId, NodeId, attempt_id
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant, TaskShape
from atoll.core.model.spec import JobSpec, OnLost, TaskGroup


def attempt(number: int) -> AttemptId:
    """The first attempt of job `number`."""
    return attempt_id(JobId(number), 1)


def job(
    seconds: float = 0.0, exit_code: int = 0, *, on_lost: OnLost = OnLost.HOLD, run: str = ""
) -> JobSpec:
    """A job that takes so long on every backend."""
    envs = (("ATOLL_SIM_EXIT", str(exit_code)), ("ATOLL_SIM_SECONDS", str(seconds)))
    script = run or f"sleep {seconds}; exit {exit_code}"
    group = TaskGroup("main", 1, 1, shapes=(TaskShape(100, 1 << 20),), run=script, envs=envs)
    return JobSpec("job", "default", (group,), on_lost=on_lost)


def on(*nodes: int, devices: Sequence[DeviceGrant] = ()) -> list[TaskPlacement]:
    """One task on each of these nodes; `devices` on each."""
    return [
        TaskPlacement(
            group=0,
            rank=rank,
            node=NodeId(node + 1),
            node_name=f"n-{node:04d}",
            cpu_milli=100,
            memory_bytes=1 << 26,
            devices=tuple(devices),
        )
        for rank, node in enumerate(nodes)
    ]
