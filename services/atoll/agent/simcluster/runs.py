"""One simulated run: how long it takes, how it ends, what it prints."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from atoll.agent.simcluster.progress import NEVER, NEW, Progress, Saving, saving_of
from atoll.core.model.ids import AttemptId, NodeId, attempt_name, job_of
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.model.spec import JobSpec, OnLost
from atoll.ports.backend import StartOrder

MOST_LINES: Final = 10_000
MOST_SECONDS: Final = 10 * 365 * 86_400.0


@dataclass(frozen=True, slots=True)
class Script:
    """What a simulated run does, in seconds of the simulated cluster."""

    seconds: float = 1.0
    exit_code: int = 0
    lines: int = 10
    stop_s: float = 0.0
    """How long it takes to obey a stop."""
    limit_s: float = 0.0
    """Its time limit; 0: none."""
    guarded: bool = False
    throughput: tuple[tuple[int, float], ...] = ()
    """(tasks, work per second) of an elastic job, by rising size; else it is always the same."""
    rescale_s: float = 0.0
    saving: Saving = NEVER
    progress: Progress = NEW
    """Of its job before it."""

    def rate(self, tasks: int) -> float:
        """How fast so many tasks get on, in any unit."""
        return next((rate for size, rate in reversed(self.throughput) if size <= tasks), 1.0)

    @property
    def over_time(self) -> bool:
        """Whether its time limit ends it."""
        return 0 < self.limit_s < self.progress.left_s(self.saving, self.seconds)

    @property
    def lasts_s(self) -> float:
        """How long it runs when nothing stops it."""
        left_s = self.progress.left_s(self.saving, self.seconds)
        return self.limit_s if self.over_time else left_s


def script_of(spec: JobSpec, progress: Progress = NEW) -> Script:
    """What the environments of a job's groups ask for; nonsense there counts as not given."""
    envs = [dict(group.envs) for group in spec.groups]
    exits = [int(_number(env, "ATOLL_SIM_EXIT", 0)) for env in envs]
    grace_s = spec.grace_s + (spec.checkpoint.grace_s if spec.checkpoint else 0.0)
    return Script(
        seconds=max(_number(env, "ATOLL_SIM_SECONDS", 1.0) for env in envs),
        exit_code=next((code for code in exits if code), 0),
        lines=min(MOST_LINES, max(int(_number(env, "ATOLL_SIM_LINES", 10)) for env in envs)),
        stop_s=min(grace_s, max(_number(env, "ATOLL_SIM_STOP_SECONDS", 0.0) for env in envs)),
        limit_s=spec.time_limit_s,
        guarded=spec.on_lost is OnLost.REQUEUE,
        throughput=spec.elastic.throughput if spec.elastic else (),
        rescale_s=spec.elastic.rescale_cost_s if spec.elastic else 0.0,
        saving=saving_of(spec),
        progress=progress,
    )


@dataclass(slots=True)
class Run:
    """A run that was really started, until its end is known to all."""

    attempt: AttemptId
    tasks: tuple[TaskPlacement, ...]
    script: Script
    began: float
    """Wall time."""
    ends: float
    """Wall time of its natural end."""
    ended: float = 0.0
    """Wall time; 0: it runs."""
    how: str = ""
    """As in the ledger."""
    stopping: bool = False
    partial: bool = False
    exit_code: int | None = field(default=None)

    @property
    def progress(self) -> Progress:
        """What is safe of its job's work once it was stopped, as far as it came."""
        script = self.script
        share = (self.ended - self.began) / max(self.ends - self.began, 1e-9)
        return script.progress.after(script.saving, script.seconds, ran_s=share * script.lasts_s)


def begun(
    order: StartOrder,
    tasks: tuple[TaskPlacement, ...],
    progress: Progress = NEW,
    *,
    at: float,
    speed: float,
) -> Run:
    """The run that an order makes; `at` is wall time, `speed` job seconds per real second."""
    script = script_of(order.spec, progress)
    return Run(
        attempt=order.attempt,
        tasks=tasks,
        script=script,
        began=at,
        ends=at + script.lasts_s / speed,
        partial=len(tasks) < len(order.tasks),
    )


def to_entry(run: Run) -> dict[str, Any]:
    """The ledger's entry of its start."""
    script = run.script
    return {
        "t": "start",
        "attempt": run.attempt,
        "job": job_of(run.attempt),
        "at": run.began,
        "ends_at": run.ends,
        "exit": script.exit_code,
        "partial": run.partial,
        "guarded": script.guarded,
        "seconds": script.seconds,
        "limit_s": script.limit_s,
        "stop_s": script.stop_s,
        "lines": script.lines,
        "throughput": script.throughput,
        "rescale_s": script.rescale_s,
        "saving": [script.saving.interval_s, script.saving.restart_cost_s],
        "progress": [script.progress.saved_s, script.progress.restarts],
        "tasks": _tasks_entry(run.tasks),
    }


def resize_entry(run: Run, at: float) -> dict[str, Any]:
    """The ledger's entry of a change of its size: all that runs from then on."""
    return {
        "t": "resize",
        "attempt": run.attempt,
        "at": at,
        "ends_at": run.ends,
        "tasks": _tasks_entry(run.tasks),
    }


def reshape(run: Run, tasks: tuple[TaskPlacement, ...], *, at: float, speed: float) -> None:
    """Go on with other tasks; what is left of an elastic job takes longer or shorter then."""
    script = run.script
    if script.throughput and not script.over_time:
        left = max(0.0, run.ends - at) * script.rate(len(run.tasks)) / script.rate(len(tasks))
        run.ends = at + left + script.rescale_s / speed
    run.tasks = tasks


def replay_resize(run: Run, entry: Mapping[str, Any]) -> None:
    """The same from the ledger."""
    run.tasks, run.ends = tuple(map(_task, entry["tasks"])), entry["ends_at"]


def from_entry(entry: Mapping[str, Any]) -> Run:
    """The run whose start the ledger tells of."""
    script = Script(
        seconds=entry["seconds"],
        exit_code=entry["exit"],
        lines=entry["lines"],
        stop_s=entry["stop_s"],
        limit_s=entry["limit_s"],
        guarded=entry["guarded"],
        throughput=tuple((size, rate) for size, rate in entry["throughput"]),
        rescale_s=entry["rescale_s"],
        saving=Saving(*entry["saving"]),
        progress=Progress(*entry["progress"]),
    )
    return Run(
        attempt=AttemptId(entry["attempt"]),
        tasks=tuple(map(_task, entry["tasks"])),
        script=script,
        began=entry["at"],
        ends=entry["ends_at"],
        partial=entry["partial"],
    )


def output(run: Run, rank: int, *, now: float) -> bytes:
    """All that a rank has printed by `now` (wall time): spread evenly over the run."""
    task = next(task for task in run.tasks if task.rank == rank)
    until = run.ended or now
    whole = max(run.ends - run.began, 1e-9)
    share = min(1.0, max(0.0, (until - run.began) / whole))
    name, lines = attempt_name(run.attempt), run.script.lines
    text = [f"simulated run {name}: rank {rank} on {task.node_name}"]
    text += [f"step {line} of {lines}" for line in range(1, math.floor(share * lines) + 1)]
    if run.ended:
        code = "" if run.exit_code is None else f", exit code {run.exit_code}"
        text.append(f"end: {run.how}{code}")
    return "".join(f"{line}\n" for line in text).encode()


def _tasks_entry(tasks: tuple[TaskPlacement, ...]) -> list[dict[str, Any]]:
    return [
        {
            "rank": task.rank,
            "group": task.group,
            "node": task.node_name,
            "node_id": task.node,
            "cpu_milli": task.cpu_milli,
            "memory_bytes": task.memory_bytes,
            "devices": [
                [grant.index, grant.blocks, grant.slice_mask, grant.profile]
                for grant in task.devices
            ],
        }
        for task in tasks
    ]


def _task(entry: Mapping[str, Any]) -> TaskPlacement:
    return TaskPlacement(
        group=entry["group"],
        rank=entry["rank"],
        node=NodeId(entry["node_id"]),
        node_name=entry["node"],
        cpu_milli=entry["cpu_milli"],
        memory_bytes=entry["memory_bytes"],
        devices=tuple(
            DeviceGrant(index, blocks, mask, profile)
            for index, blocks, mask, profile in entry["devices"]
        ),
    )


def _number(env: Mapping[str, str], key: str, default: float) -> float:
    try:
        number = float(env[key])
    except (KeyError, ValueError):
        return default
    return min(max(number, 0.0), MOST_SECONDS) if math.isfinite(number) else default
