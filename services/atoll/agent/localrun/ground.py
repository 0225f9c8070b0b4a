"""This machine as a node: its devices and load, looked at from time to time."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from atoll.agent.localrun import machine
from atoll.agent.localrun.devices import declared_devices, foreign_blocks, found_devices
from atoll.agent.localrun.load import LoadMeter, own_processes, sample
from atoll.agent.settings import AgentSettings
from atoll.core.model.burst import node_names
from atoll.core.model.inventory import Device, LocalUse, NodeInventory
from atoll.ports.clock import Clock

LOOK_S: Final = 10.0
DEVICES_EVERY: Final = 3
"""Looks at the load for one at the devices, which is slow."""
LOOPBACK: Final = "127.0.0.1"


class Ground:
    """The nodes, equal ones; `wrappers` gives the pids of the runs that are ours."""

    def __init__(
        self, settings: AgentSettings, clock: Clock, wrappers: Callable[[], Sequence[int]]
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._wrappers = wrappers
        self._meter = LoadMeter()
        self._changed = asyncio.Event()
        name = settings.node_name or machine.host_name()
        self._declared = (
            None if settings.devices_file is None else declared_devices(settings.devices_file)
        )
        self._names = node_names(name, settings.node_count)
        self.node = NodeInventory(
            name=name,
            cpu_milli=settings.cpu_milli or machine.cpu_milli(),
            memory_bytes=settings.memory_bytes or machine.memory_bytes(),
            labels=tuple(sorted((machine.labels() | {"cluster": settings.cluster}).items())),
            # Members of a gang are all here.
            address=LOOPBACK,
        )

    @property
    def nodes(self) -> tuple[NodeInventory, ...]:
        """All that this machine is shown as."""
        return tuple(replace(self.node, name=name) for name in self._names)

    async def changed(self) -> None:
        """Return when the node has changed."""
        await self._changed.wait()
        self._changed.clear()

    async def look(self) -> None:
        """Look at the devices now."""
        devices = await asyncio.to_thread(self._look_at_devices)
        self._now(replace(self.node, devices=devices))

    async def run(self) -> None:
        """Look from time to time, for ever."""
        turn = 0
        while True:
            await self._clock.sleep(LOOK_S)
            turn += 1
            if turn % DEVICES_EVERY == 0:
                await self.look()
            if self._settings.measure_load:
                use = await asyncio.to_thread(self._measure, self._wrappers(), self.node.devices)
                self._now(replace(self.node, local_use=use))

    def _now(self, node: NodeInventory) -> None:
        if node != self.node:
            self.node = node
            self._changed.set()

    def _look_at_devices(self) -> tuple[Device, ...]:
        if self._declared is not None:
            return self._declared
        return found_devices(dynamic=self._settings.mig_dynamic)

    def _measure(self, wrappers: Iterable[int], devices: Sequence[Device]) -> LocalUse:
        pids = tuple(wrappers)
        own = [process.pid for process in own_processes(pids)]
        blocks = foreign_blocks(devices, own) if self._declared is None and devices else ()
        return self._meter.take(sample(self._clock.monotonic(), pids), blocks)
