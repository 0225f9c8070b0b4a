"""Jobs and fleets for tests of the simulator."""

from typing import Any

from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import JobSpec, TaskGroup
from atoll.sim.fleet import Fleet, fleet
from atoll.sim.work import Work

GIB = 1 << 30


def node(name: str, *, gpus: int = 8, cpus: int = 64) -> NodeInventory:
    devices = tuple(Device(index, "H100", 80 * GIB) for index in range(gpus))
    return NodeInventory(name, cpus * 1000, 512 * GIB, devices=devices)


def nodes(count: int, *, gpus: int = 8) -> Fleet:
    return fleet({"c1": [node(f"n{i}", gpus=gpus) for i in range(count)]})


def spec(*, gpus: int = 1, tasks: int = 1, queue: str = "default", **more: Any) -> JobSpec:
    shape = TaskShape(1000, GIB, DeviceRequest("H100", gpus))
    group = TaskGroup("main", tasks, tasks, shapes=(shape,), run="true")
    return JobSpec(name="job", queue=queue, groups=(group,), **more)


def work(at: float, run_s: float, *, gpus: int = 1, tasks: int = 1, **more: Any) -> Work:
    return Work(at, spec(gpus=gpus, tasks=tasks, **more), run_s)
