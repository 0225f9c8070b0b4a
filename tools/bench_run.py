"""One window after the other: submit, wait for the ends, read the rows."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tools.bench_numbers import Measured
from tools.bench_processes import Meter
from tools.bench_rows import Rows
from tools.bench_submit import Window

ROOT: Final = Path(__file__).parents[1]
SUBMITTER: Final = "submitter"
JOB_S: Final = 1.5
"""How long a job runs: long enough to be seen running, too short to fill the cluster."""
ENDED_WITHIN_S: Final = 20.0
MOST_ANSWER_BYTES: Final = 1 << 26


class Submitter:
    """The process that submits."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    async def submit(self, window: Window) -> dict[str, Any]:
        """What it says of a window, once all calls are answered."""
        reading, writing = self._process.stdout, self._process.stdin
        assert reading is not None
        assert writing is not None
        writing.write(json.dumps(asdict(window)).encode() + b"\n")
        line = await reading.readline()
        if not line:
            raise RuntimeError("the submitter died")
        done: dict[str, Any] = json.loads(line)
        return done


@asynccontextmanager
async def submitter(endpoint: str) -> AsyncIterator[Submitter]:
    """A submitter to this address, ended afterwards."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tools.bench_submit", endpoint,
        cwd=ROOT, limit=MOST_ANSWER_BYTES,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Submitter(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Runner:
    """Runs windows against one stack; `batch` jobs are in a call."""

    def __init__(self, process: Submitter, rows: Rows, meter: Meter, *, batch: int) -> None:
        self._submitter = process
        self._rows = rows
        self._meter = meter
        self._batch = batch

    async def window(self, rate: float, seconds: float) -> Measured:
        """Submit at a rate for a while, and see all of it to its end."""
        before = self._meter.cpu_s()
        done = await self._submitter.submit(Window(rate, seconds, self._batch, JOB_S))
        self._meter.look()
        await self._rows.ended(done["ids"], within_s=ENDED_WITHIN_S)
        after = self._meter.cpu_s()
        return Measured(
            rate=rate,
            seconds=seconds,
            job_seconds=JOB_S,
            took_s=done["seconds"],
            ack_ms=done["ack_ms"],
            errors=len(done["errors"]),
            jobs=await self._rows.jobs(done["ids"]),
            cpu_s={name: after[name] - before[name] for name in after},
        )
