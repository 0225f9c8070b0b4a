"""Jobs that keep coming while something breaks, and what became of them."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import asyncpg

from atoll.adapters.system import SystemClock
from atoll.client import AsyncClient
from atoll.core.model.errors import Unavailable
from tests.e2e.stack import Stack

QUIET_WITHIN_S = 120.0


def job(name: str, *, seconds: float = 0.2, gpus: str = "H100:1", **more: Any) -> dict[str, Any]:
    """A job for a simulated cluster."""
    return {
        "name": name,
        "run": "true",
        "resources": {"accelerators": gpus, "cpus": 1, "memory": "1Gi"},
        "envs": {"ATOLL_SIM_SECONDS": str(seconds)},
        **more,
    }


@dataclass
class Load:
    """Submits batches until it is stopped; every batch is tried until it is acknowledged."""

    client: AsyncClient
    batch: int = 20
    pause_s: float = 0.05
    seconds: float = 0.2
    more: dict[str, Any] = field(default_factory=dict)
    acknowledged: list[int] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None
    _stopping: bool = False

    async def __aenter__(self) -> "Load":
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        assert self._task is not None
        await self._task

    async def reach(self, jobs: int) -> None:
        """Wait until so many are acknowledged."""
        while len(self.acknowledged) < jobs:
            assert self._task is not None
            assert not self._task.done(), "the load ended"
            await asyncio.sleep(0.02)

    async def _run(self) -> None:
        number = 0
        while not self._stopping:
            specs = [
                job(f"load-{number}-{i}", seconds=self.seconds, **self.more)
                for i in range(self.batch)
            ]
            await self._submit(specs)
            number += 1
            await asyncio.sleep(self.pause_s)

    async def _submit(self, specs: list[dict[str, Any]]) -> None:
        key = str(uuid4())
        while True:
            try:
                jobs = await self.client.submit(specs, request_id=key)
            except Unavailable:
                await asyncio.sleep(0.2)
                continue
            self.acknowledged += [one.id for one in jobs]
            return


async def quiet(stack: Stack, jobs: Iterable[int], *, within_s: float = QUIET_WITHIN_S) -> None:
    """Wait until all of the jobs have ended; fails when none has for `within_s`, with the rest."""
    wanted = list(jobs)
    open_jobs: list[Any] = wanted
    clock = SystemClock()
    until = clock.monotonic() + within_s
    while clock.monotonic() < until:
        before = len(open_jobs)
        open_jobs = await rows(
            stack,
            "SELECT id, state::text, cluster, attempt FROM jobs WHERE id = ANY($1::bigint[])"
            " AND state::text NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED') ORDER BY id",
            wanted,
        )
        if not open_jobs:
            return
        if len(open_jobs) < before:
            until = clock.monotonic() + within_s
        await asyncio.sleep(0.1)
    tails = "\n".join(f"== {p.service}\n{p.tail()}" for p in stack.processes())
    raise AssertionError(f"{len(open_jobs)} jobs did not end, first {open_jobs[:3]}\n{tails}")


async def rows(stack: Stack, statement: str, *values: Any) -> list[Any]:
    """Ask the database itself."""
    connection = await asyncpg.connect(stack.dsn)
    try:
        return [tuple(row) for row in await connection.fetch(statement, *values)]
    finally:
        await connection.close()


async def value(stack: Stack, statement: str, *values: Any) -> Any:
    """The first column of the first row."""
    found = await rows(stack, statement, *values)
    return found[0][0] if found else None
