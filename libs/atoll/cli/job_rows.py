"""Jobs in tables, and one job in full."""

from collections.abc import Iterator, Mapping
from typing import Final

from atoll.adapters.system import SystemClock
from atoll.api.common.v1 import common_pb2
from atoll.cli.plain import plain, rfc3339
from atoll.cli.render import Column, Listing
from atoll.cli.words import ago, bytes_text, cpus_text, devices_text, span
from atoll.client.scheduling import Wait
from atoll.client.views import JobInfo
from atoll.core.model.lifecycle import JobState
from atoll.core.model.resources import BLOCKS_PER_DEVICE

STYLES: Final = {
    JobState.QUEUED: "yellow",
    JobState.HELD: "magenta",
    JobState.ASSIGNED: "cyan",
    JobState.RUNNING: "blue",
    JobState.SUCCEEDED: "green",
    JobState.FAILED: "red",
    JobState.CANCELLED: "bright_black",
}

NO_WAITS: Final[Mapping[int, Wait]] = {}
_CHANCES: Final = {
    "guaranteed": "guaranteed",
    "likely": "likely to be met, but not guaranteed",
    "cannot": "not going to be met",
}


def job_listing(waits: Mapping[int, Wait] = NO_WAITS) -> Listing[JobInfo]:
    """How jobs are listed, as of now; `waits`: why queued jobs wait, by id."""
    now = SystemClock().now()
    told = any(wait.eta is not None for wait in waits.values())
    return Listing(
        columns=(
            Column("JOB", lambda job: str(job.id), right=True),
            Column("NAME", lambda job: job.name),
            Column("QUEUE", lambda job: job.queue),
            Column("STATE", state_text, style=lambda job: STYLES[job.state]),
            Column("NEEDS", needs),
            Column("CLUSTER", lambda job: job.cluster or "-"),
            Column("NODES", nodes_text, wide=True),
            *([Column("START", lambda job: start_text(job, waits, now), right=True)] * told),
            Column("AGE", lambda job: ago(job.submitted_at, now), right=True),
            Column("RAN", lambda job: ran(job, now), right=True),
            Column("TRIES", lambda job: str(job.attempts), wide=True, right=True),
            Column("PRIORITY", lambda job: str(job.priority), wide=True, right=True),
            Column("BY", lambda job: job.principal, wide=True),
            Column("WHY", lambda job: why(job, waits)[0] or "-"),
            Column("MESSAGE", lambda job: why(job, waits)[1] or "-", wide=True),
        ),
        name=lambda job: str(job.id),
        empty="no jobs",
        more=lambda job: {"wait": plain(waits[job.id])} if job.id in waits else {},
    )


def why(job: JobInfo, waits: Mapping[int, Wait]) -> tuple[str, str]:
    """The code and the sentence of why a job is where it is; empty where nothing is to tell."""
    wait = waits.get(job.id)
    if job.state is JobState.QUEUED and wait is not None and wait.code:
        return wait.code, wait.message
    return job.reason, job.message


def start_text(job: JobInfo, waits: Mapping[int, Wait], now: float) -> str:
    """In how long it starts: `~2h` is a forecast with even chances, `<2h` a promise."""
    wait = waits.get(job.id)
    if job.state is not JobState.QUEUED or wait is None or wait.eta is None:
        return "-"
    left_s = wait.eta.p50_at - now
    if left_s < 1:
        return "now"
    return f"{'<' if wait.eta.promised else '~'}{span(left_s)}"


def state_text(job: JobInfo) -> str:
    """The state, with what a person wants to know beside it."""
    if job.state is JobState.FAILED and job.exit_code is not None:
        return f"{job.state.value} ({job.exit_code})"
    return f"{job.state.value} (cancelling)" if job.cancelling else job.state.value


def needs(job: JobInfo) -> str:
    """What its tasks take: `4 x H100:8`, `0.5 CPU`."""
    return ", ".join(_group_needs(group) for group in job.proto.groups) or "-"


def nodes_text(job: JobInfo) -> str:
    """Where its tasks are."""
    names = sorted({task.node_name for task in job.tasks})
    shown = ",".join(names[:3])
    return f"{shown},+{len(names) - 3}" if len(names) > 3 else shown or "-"


def ran(job: JobInfo, now: float) -> str:
    """How long it has run; what waits to run again does not run."""
    if not job.started_at or job.state in ("QUEUED", "HELD", "ASSIGNED"):
        return "-"
    return span((job.ended_at or now) - job.started_at)


def details(job: JobInfo, waits: Mapping[int, Wait] = NO_WAITS) -> Iterator[tuple[str, str]]:
    """What `get` shows of one job."""
    now = SystemClock().now()
    yield "job", str(job.id)
    yield "name", job.name
    yield "queue", job.queue
    yield "state", state_text(job)
    if reason := ": ".join(part for part in why(job, waits) if part):
        yield "why", reason
    yield from _start(job, waits, now)
    yield "needs", needs(job)
    yield from _wishes(job)
    yield "priority", f"{job.priority} ({job.priority_class})"
    yield "submitted", f"{ago(job.submitted_at, now)} ago by {job.principal or '-'}"
    for name in ("placed", "accepted", "started", "ended"):
        if moment := getattr(job, f"{name}_at"):
            yield name, f"{ago(moment, now)} ago"
    if job.array_id:
        yield "array", f"{job.array_id}, member {job.array_index}"
    yield "tries", f"{job.attempts} ({job.rollbacks} rolled back)"
    if job.cluster:
        yield "cluster", job.cluster
    for task in job.tasks:
        grants = ", ".join(
            _grant(grant.index, grant.blocks, grant.profile) for grant in task.devices
        )
        yield f"rank {task.rank}", f"{task.node_name}{f' ({grants})' if grants else ''}"
    if job.labels:
        yield "labels", ", ".join(f"{key}={value}" for key, value in sorted(job.labels.items()))


def _start(job: JobInfo, waits: Mapping[int, Wait], now: float) -> Iterator[tuple[str, str]]:
    wait = waits.get(job.id)
    if wait is not None and wait.eta is not None:
        eta = wait.eta
        latest = "" if eta.promised else f", with 90 % in {span(eta.p90_at - now)}"
        yield "starts", f"{start_text(job, waits, now)}{latest}: {eta.cause}"


def told_text(job: JobInfo) -> str:
    """What a job with a deadline was told at its submit, as a sentence; empty without one."""
    if (told := job.told) is None:
        return ""
    parts = [f"job {job.id}: its deadline is {_CHANCES.get(told.chance, told.chance)}"]
    if told.why:
        parts.append(told.why)
    if told.earliest_at:
        parts.append(f"it could be done by {rfc3339(told.earliest_at)}")
    return "; ".join(parts)


def sizes_text(elastic: common_pb2.Elastic) -> str:
    """Work per second by number of tasks, and the work."""
    rates = ", ".join(f"{size}: {rate:g}" for size, rate in sorted(elastic.throughput.items()))
    return f"{rates} a second of {elastic.work:g}"


def shape_text(shape: common_pb2.TaskShape) -> str:
    """What one task takes."""
    if not shape.HasField("device"):
        return f"{cpus_text(shape.cpu_milli)} CPU"
    device = shape.device
    kind = device.kind or "any"
    if device.profile:
        return f"{kind}:{device.profile}:{device.count}"
    if device.memory_bytes:
        return f"{kind}:{bytes_text(device.memory_bytes)}"
    share = device.blocks < BLOCKS_PER_DEVICE
    return f"{kind}:{devices_text(device.blocks) if share else device.count}"


def _wishes(job: JobInfo) -> Iterator[tuple[str, str]]:
    if deadline := job.proto.deadline_at:
        yield "deadline", f"{rfc3339(deadline)}{' (guaranteed)' if job.guaranteed else ''}"
    if job.proto.HasField("elastic"):
        yield "sizes", sizes_text(job.proto.elastic)


def _group_needs(group: common_pb2.TaskGroup) -> str:
    shapes = " or ".join(shape_text(shape) for shape in group.shapes)
    if group.min_count != group.count:
        return f"{group.min_count}-{group.count} x {shapes}"
    return shapes if group.count == 1 else f"{group.count} x {shapes}"


def _grant(index: int, blocks: int, profile: str) -> str:
    share = profile or ("" if blocks == BLOCKS_PER_DEVICE else f"{blocks}%")
    return f"device {index} {share}".rstrip()
