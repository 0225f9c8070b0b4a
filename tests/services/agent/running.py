"""Agents for tests: inside the test's own loop, or as a process that can be killed."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from atoll.adapters.system import SystemClock, SystemIds
from atoll.agent.agent import Agent
from atoll.agent.backends.registry import make_backend
from atoll.agent.journal import open_journal
from atoll.agent.parts import Parts
from atoll.agent.settings import AgentSettings
from atoll.agent.wiring import dialler, make_parts
from tests.services.agent.fake_dispatch import CLUSTER, FakeDispatch
from tests.support.lines import whole_lines

NODES = {
    "nodes": [
        {
            "name": "n",
            "count": 4,
            "cpus": 64,
            "memory": "256Gi",
            "devices": {"kind": "H100", "count": 8, "memory": "80Gi"},
            "topology": {"rack": 2},
        }
    ]
}


def simulated(folder: Path, dispatch: FakeDispatch, **more: Any) -> AgentSettings:
    """Settings of an agent over a simulated cluster with nodes n-0000 to n-0003."""
    cluster = folder / "cluster.yaml"
    cluster.write_text(yaml.safe_dump(NODES))
    data = folder / "data"
    data.mkdir(exist_ok=True)
    settings = AgentSettings(
        cluster=CLUSTER,
        backend="simulated",
        cluster_file=cluster,
        data_dir=data,
        dispatch=(dispatch.address,),
        metrics_listen="127.0.0.1:0",
    )
    return settings.model_copy(update=more)


def local(folder: Path, dispatch: FakeDispatch, **more: Any) -> AgentSettings:
    """Settings of an agent over this machine, as node n-0000."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    settings = AgentSettings(
        cluster=CLUSTER,
        backend="local",
        data_dir=data,
        dispatch=(dispatch.address,),
        metrics_listen="127.0.0.1:0",
        node_name="n-0000",
        measure_load=False,
    )
    return settings.model_copy(update=more)


class Running:
    """An agent in this process."""

    def __init__(self, settings: AgentSettings) -> None:
        self.settings = settings
        self.parts: Parts | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin, as the wiring does."""
        clock = SystemClock()
        backend = make_backend(self.settings, clock)
        journal = open_journal(
            self.settings.data_dir, self.settings.cluster, instance=SystemIds().uuid()
        )
        self.parts = make_parts(self.settings, backend, journal, clock=clock)
        agent = Agent(
            self.parts, self.settings.dispatch, dial=dialler(self.settings), ids=SystemIds()
        )
        agent.restore(await backend.open())
        self._stopping = asyncio.Event()
        self._task = asyncio.create_task(agent.run(self._stopping))

    async def stop(self, *, in_order: bool = True) -> None:
        """End it, with a Goodbye or without."""
        if self._task is None or self.parts is None:
            return
        if in_order:
            self._stopping.set()
        else:
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=not in_order)
        await self.parts.worker.close()
        await self.parts.journal.close()
        await self.parts.backend.close()
        self._task = None

    def misbehave(self, **how: Any) -> None:
        """Tell the simulated cluster how to behave from now on."""
        write_misbehaviour(self.settings, how)

    def ledger(self, kind: str) -> list[dict[str, Any]]:
        """Entries of one kind in the simulated cluster's ledger."""
        return ledger(self.settings, kind)


class AgentProcess:
    """An agent as it is in production: a process."""

    def __init__(self, settings: AgentSettings) -> None:
        self.settings = settings
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, *, failpoint: str = "") -> None:
        """Run it, armed with a failpoint."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ATOLL_")}
        if failpoint:
            environment["ATOLL_FAILPOINT"] = failpoint
        with (self.settings.data_dir / "agent.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "atoll.agent",
                *flags(self.settings),
                env=environment,
                stderr=log,
                start_new_session=True,
            )

    async def died(self) -> int:
        """Its exit code, when it has ended by itself."""
        assert self._process is not None
        async with asyncio.timeout(60):
            return await self._process.wait()

    async def kill(self) -> None:
        """SIGKILL, as the kernel does when memory is short."""
        await self._signal(signal.SIGKILL)

    async def terminate(self) -> None:
        """SIGTERM, as an operator does."""
        await self._signal(signal.SIGTERM)

    async def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
            await self.died()


def flags(settings: AgentSettings) -> list[str]:
    """The settings that differ from their defaults, as flags."""
    given = []
    for field, info in AgentSettings.model_fields.items():
        value = getattr(settings, field)
        if value == info.default:
            continue
        if isinstance(value, bool):
            given.append(f"--{'' if value else 'no-'}{field.replace('_', '-')}")
        else:
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            given += [f"--{field.replace('_', '-')}", text]
    return given


def write_misbehaviour(settings: AgentSettings, how: Mapping[str, Any]) -> None:
    draft = settings.data_dir / "misbehave.json.new"
    draft.write_text(json.dumps(how))
    draft.replace(settings.data_dir / "misbehave.json")


def ledger(settings: AgentSettings, kind: str) -> list[dict[str, Any]]:
    """Entries of one kind in a simulated cluster's ledger."""
    lines = whole_lines(settings.data_dir / "ledger.jsonl")
    return [entry for line in lines if (entry := json.loads(line))["t"] == kind]
