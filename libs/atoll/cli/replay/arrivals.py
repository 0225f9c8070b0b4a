"""From pods of a trace to jobs: what each asks for, when it comes, how long it runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from atoll.cli.replay.openb import WHOLE_MILLI, TraceNode, TracePod
from atoll.client.spec import Spec, job_name, parse_spec

MILLI_PER_BLOCK: Final = 10
LABEL: Final = "replay"
SIM_SECONDS: Final = "ATOLL_SIM_SECONDS"
LEAST_RUN_S: Final = 0.01
UNKNOWN_RUN_S: Final = 1.0
"""Of a pod whose list tells no times, whatever the speed."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job and when it is submitted, in seconds from the start of the replay."""

    at_s: float
    spec: Spec


@dataclass(frozen=True, slots=True)
class Pace:
    """How trace time becomes time here: `speed` seconds of it in one."""

    speed: float
    start_s: float

    def arrives(self, pod: TracePod) -> float:
        """Seconds from the start of the replay."""
        return (pod.created_s - self.start_s) / self.speed

    def runs(self, pod: TracePod) -> float:
        """Seconds that its job runs."""
        return max(LEAST_RUN_S, pod.ran_s / self.speed) if pod.ran_s else UNKNOWN_RUN_S


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is replayed, and what had to be changed for it."""

    arrivals: tuple[Arrival, ...]
    rounded_up: int
    """Jobs whose share is no whole percent, and asks for the next one."""
    too_large: tuple[str, ...]
    """Pods that fit none of the nodes; they are left out."""


def prepare(
    pods: Sequence[TracePod],
    nodes: Sequence[TraceNode],
    pace: Pace,
    *,
    run: str,
    queue: str,
    pin: tuple[str, str] | None,
) -> Prepared:
    """The jobs of a replay with the label `replay=run`, on nodes with the label `pin`."""
    machines = {(n.cpu_milli, n.memory_bytes, n.devices, n.kind) for n in nodes}
    fitting = [pod for pod in pods if any(_fits(pod, *machine) for machine in machines)]
    names = {pod.name for pod in fitting}
    return Prepared(
        arrivals=tuple(
            Arrival(pace.arrives(pod), _spec(pod, pace, run=run, queue=queue, pin=pin))
            for pod in fitting
        ),
        rounded_up=sum(1 for pod in fitting if pod.milli % MILLI_PER_BLOCK),
        too_large=tuple(pod.name for pod in pods if pod.name not in names),
    )


def pace_of(pods: Sequence[TracePod], speed: float | None, *, span_s: float) -> Pace:
    """The given speed, or the one at which all jobs arrive within `span_s` seconds."""
    start = min((pod.created_s for pod in pods), default=0.0)
    last = max((pod.created_s for pod in pods), default=0.0)
    return Pace(speed or max(1.0, (last - start) / span_s), start)


def due(arrivals: Sequence[Arrival], *, first: int, now_s: float, most: int) -> Sequence[Arrival]:
    """Those from `first` on that have come by `now_s`, `most` at the most."""
    chosen = arrivals[first : first + most]
    return [arrival for arrival in chosen if arrival.at_s <= now_s]


def _fits(pod: TracePod, cpu_milli: int, memory_bytes: int, *machine: Any) -> bool:
    devices, kind = machine
    roomy = pod.cpu_milli <= cpu_milli and pod.memory_bytes <= memory_bytes
    return roomy and pod.devices <= devices and (not pod.kinds or kind in pod.kinds)


def _spec(pod: TracePod, pace: Pace, *, run: str, queue: str, pin: tuple[str, str] | None) -> Spec:
    resources: dict[str, Any] = {
        "cpus": f"{max(1, pod.cpu_milli)}m",
        "memory": f"{max(1, pod.memory_bytes)}B",
        "labels": dict([pin]) if pin else {},
        **_devices(pod),
    }
    return parse_spec({
        "name": job_name(pod.name),
        "queue": queue,
        "labels": {LABEL: run},
        "run": f"# {pod.name} of a trace: only simulated clusters run it\n:",
        "envs": {SIM_SECONDS: f"{pace.runs(pod):.3f}"},
        "resources": resources,
    })


def _devices(pod: TracePod) -> Mapping[str, Any]:
    if not pod.devices:
        return {}
    kinds = list(_requests(pod))
    if len(kinds) == 1:
        return {"accelerators": kinds[0]}
    return {"any_of": [{"accelerators": kind} for kind in kinds]}


def _requests(pod: TracePod) -> Iterator[str]:
    for kind in pod.kinds or ("",):
        yield f"{kind}:{_amount(pod)}" if kind else _amount(pod)


def _amount(pod: TracePod) -> str:
    if pod.milli == WHOLE_MILLI:
        return str(pod.devices)
    blocks = math.ceil(pod.milli / MILLI_PER_BLOCK)
    return f"{blocks / 100:.2f}" if blocks < 100 else "1"
