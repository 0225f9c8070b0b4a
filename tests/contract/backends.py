"""What the contract suite needs to know of each backend: how to make one, and a job for all."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from atoll.adapters.system import SystemClock
from atoll.agent.backends.registry import make_backend
from atoll.agent.settings import AgentSettings
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, attempt_id
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant, TaskShape
from atoll.core.model.spec import Checkpoint, JobSpec, OnLost, TaskGroup
from atoll.ports.backend import Backend, RunEvent, StartOrder, StopOrder

MIB: Final = 1 << 20
TERMINAL: Final = (AttemptEvent.FINISHED, AttemptEvent.STOPPED, AttemptEvent.REJECTED)
CLOCK: Final = SystemClock()
MEASURED: Final = 999
"""The job by which the machine's pace is told."""


def _local(folder: Path) -> AgentSettings:
    devices = folder / "devices.yaml"
    devices.write_text(yaml.safe_dump([{"kind": "H100", "count": 2, "memory": "80Gi"}]))
    return AgentSettings(
        cluster="c1",
        backend="local",
        data_dir=folder / "data",
        devices_file=devices,
        node_name="n0",
        measure_load=False,
    )


def _simulated(folder: Path) -> AgentSettings:
    cluster = folder / "cluster.yaml"
    group = {
        "name": "n0",
        "cpus": 4,
        "memory": "16Gi",
        "devices": {"kind": "H100", "count": 2, "memory": "80Gi"},
    }
    cluster.write_text(yaml.safe_dump({"nodes": [group]}))
    return AgentSettings(
        cluster="c1", backend="simulated", data_dir=folder / "data", cluster_file=cluster
    )


SETTINGS: Final[Mapping[str, Callable[[Path], AgentSettings]]] = {
    "local": _local,
    "simulated": _simulated,
}
"""Each gives one node `n0` with two devices."""


class Opened:
    """A backend at work, and all that it has said."""

    def __init__(self, settings: AgentSettings) -> None:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        self.backend: Backend = make_backend(settings, CLOCK)
        self.events: list[RunEvent] = []
        self._any = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    async def open(self, *, lease_s: float = 60.0) -> Sequence[RunEvent]:
        """Begin, under a lease unless it is 0; what was found."""
        found = await self.backend.open()
        self._listening = asyncio.create_task(self._listen())
        if lease_s:
            await self.lease(lease_s)
        return found

    async def again(self) -> Sequence[RunEvent]:
        """Let go and begin anew, as an agent that was started again; what was found."""
        await self.close()
        self.backend = make_backend(self.settings, CLOCK)
        self.events = []
        return await self.open()

    async def lease(self, seconds: float) -> None:
        """Let guarded runs go on for so long from now."""
        await self.backend.renew_lease(CLOCK.monotonic() + seconds)

    async def pace_s(self) -> float:
        """How long a short run takes here and now: tests bear a busy machine by it."""
        begun = CLOCK.monotonic()
        await self.backend.start(order(MEASURED, job(0.0)))
        await self.end(attempt(MEASURED))
        self.backend.forget(attempt(MEASURED))
        return CLOCK.monotonic() - begun

    async def short_lease(self) -> float:
        """A lease that is over soon, but not before a run has begun; its seconds."""
        seconds = max(1.0, 6 * await self.pace_s())
        await self.lease(seconds)
        return seconds

    async def close(self) -> None:
        """Let go, as an agent that ends does."""
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None
            await self.backend.close()

    async def end_all(self) -> None:
        """Stop all that was ever heard of, and wait for it."""
        attempts = {event.attempt for event in self.events}
        for one in attempts:
            self.backend.stop(StopOrder(one))
        for one in attempts:
            await self.end(one)

    def of(self, attempt: AttemptId) -> list[AttemptEvent]:
        """The events of an attempt."""
        return [event.event for event in self.events if event.attempt == attempt]

    async def until(self, attempt: AttemptId, *events: AttemptEvent) -> RunEvent:
        """The first of these events of an attempt, waited for."""
        async with asyncio.timeout(90):
            while True:
                for event in self.events:
                    if event.attempt == attempt and event.event in events:
                        return event
                self._any.clear()
                await self._any.wait()

    async def end(self, attempt: AttemptId) -> RunEvent:
        """The terminal event of an attempt, waited for."""
        return await self.until(attempt, *TERMINAL)

    async def _listen(self) -> None:
        async for events in self.backend.events():
            self.events += events
            self._any.set()


def attempt(number: int) -> AttemptId:
    """The first attempt of job `number`."""
    return attempt_id(JobId(number), 1)


def job(
    seconds: float = 0.1,
    exit_code: int = 0,
    *,
    run: str = "",
    time_limit_s: float = 0.0,
    on_lost: OnLost = OnLost.HOLD,
    grace_s: float = 2.0,
    checkpoint: Checkpoint | None = None,
    envs: Mapping[str, str] | None = None,
) -> JobSpec:
    """A job that takes so long on every backend, and says `hello` where it has a voice."""
    sim = {"ATOLL_SIM_SECONDS": str(seconds), "ATOLL_SIM_EXIT": str(exit_code)}
    group = TaskGroup(
        name="main",
        count=1,
        min_count=1,
        shapes=(TaskShape(100, 16 * MIB),),
        run=run or f"echo hello $ATOLL_RANK; sleep {seconds}; exit {exit_code}",
        envs=tuple(sorted((sim | dict(envs or {})).items())),
    )
    return JobSpec(
        name="job",
        queue="default",
        groups=(group,),
        time_limit_s=time_limit_s,
        on_lost=on_lost,
        grace_s=grace_s,
        checkpoint=checkpoint,
    )


def order(
    number: int,
    spec: JobSpec | None = None,
    *,
    tasks: int = 1,
    node: str = "n0",
    devices: Sequence[DeviceGrant] = (),
    cpu_milli: int = 100,
) -> StartOrder:
    """An order to run job `number`; `devices` go to the first task."""
    return StartOrder(
        cluster=ClusterName("c1"),
        attempt=attempt(number),
        spec=spec or job(),
        tasks=tuple(
            TaskPlacement(
                group=0,
                rank=rank,
                node=NodeId(1),
                node_name=node,
                cpu_milli=cpu_milli,
                memory_bytes=64 * MIB,
                devices=tuple(devices) if rank == 0 else (),
            )
            for rank in range(tasks)
        ),
        addresses={},
    )
