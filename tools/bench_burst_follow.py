"""Measures how the broker follows demand over PostgreSQL; one JSON object last.

`python -m tools.bench_burst_follow [--jobs N]`: so many jobs of ten queues wait. `take_over` is the
first look at them, `loop` the median of those after it, with a hundred jobs submitted and as many
ended between two; `forecast_s` what a forecast makes of it, in a thread. Bytes are what PostgreSQL
sent. Progress goes to stderr.
"""

import argparse
import asyncio
import json
import resource
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from atoll.adapters.postgres.migrate import upgrade
from atoll.adapters.postgres.store import PostgresStore
from atoll.adapters.system import SystemClock, SystemIds
from atoll.burst.forecasting.forecaster import Forecaster
from atoll.burst.usecases.demand import HISTORY_STEPS, demand_at
from atoll.burst.usecases.demand_table import of_queue
from atoll.burst.usecases.follower import Follower
from atoll.burst.usecases.foresight import Known, chosen, known_of
from atoll.burst.usecases.outlook import futures
from atoll.core.engine.burst.demand.series import STEP_S
from atoll.core.model.ids import JobId, QueueName, Tenant
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import JobState
from atoll.core.model.messages import ChangeKind
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import JobSpec, TaskGroup
from atoll.ports.store.common import Change
from atoll.runtime.servers.postgres import PostgresServer

QUEUES: Final = 10
AT_ONCE: Final = 2_000
LOOPS: Final = 15
CHANGES: Final = 100
SIZES: Final = (1, 2, 4, 8)
CHUNK: Final = 1 << 16


@dataclass(slots=True)
class Relay:
    """Stands before a server, and counts what that sends."""

    host: str
    port: int
    sent: int = 0

    async def start(self) -> int:
        """Its own port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _serve(self, reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection(self.host, self.port)
        await asyncio.gather(self._pass(reading, ours, 0), self._pass(theirs, writing, 1))

    async def _pass(
        self, reading: asyncio.StreamReader, writing: asyncio.StreamWriter, counts: int
    ) -> None:
        while data := await reading.read(CHUNK):
            self.sent += counts * len(data)
            writing.write(data)
            await writing.drain()
        writing.close()


@dataclass(slots=True)
class Bench:
    """A store with jobs, and who follows them."""

    store: PostgresStore
    relay: Relay
    follower: Follower
    clock: SystemClock

    async def fill(self, count: int) -> None:
        """So many jobs that wait."""
        for at in range(0, count, AT_ONCE):
            await self.submit(min(AT_ONCE, count - at), at // AT_ONCE)
        print(f"{count} jobs wait", file=sys.stderr, flush=True)

    async def submit(self, count: int, number: int = 0) -> list[JobId]:
        """Jobs of one size, of all queues."""
        size = SIZES[number % len(SIZES)]
        async with self.store.submission.begin() as tx:
            ids = await tx.next_job_ids(count)
            jobs = [_job(each, size, self.clock.now()) for each in ids]
            await tx.add_jobs(jobs)
            await tx.changed([Change(ChangeKind.JOBS, ids=tuple(ids))])
        return ids

    async def end(self, ids: Sequence[JobId]) -> None:
        """They are over."""
        async with self.store.submission.begin() as tx:
            jobs = (await tx.lock_jobs(ids)).values()
            over = [replace(j, state=JobState.CANCELLED, ended_at=self.clock.now()) for j in jobs]
            await tx.update_jobs(over)
            await tx.changed([Change(ChangeKind.JOBS, ids=tuple(ids))])

    async def look(self) -> tuple[float, int]:
        """Seconds and bytes of one look."""
        sent, begun = self.relay.sent, time.perf_counter()
        await self.follower.follow(self.store.burst, now=self.clock.now())
        return time.perf_counter() - begun, self.relay.sent - sent

    async def known(self) -> Known:
        """What a forecast is made of."""
        now = self.clock.now()
        table = await self.follower.follow(self.store.burst, now=now)
        return known_of(table.columns(), {}, capacity={}, policies={}, now=now, step_s=STEP_S)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=200_000)
    with TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(_measured(parser.parse_args().jobs, Path(folder)))))


async def _measured(jobs: int, folder: Path) -> dict[str, Any]:
    server = PostgresServer(folder)
    await server.start()
    await asyncio.to_thread(upgrade, server.dsn)
    relay = Relay(server.host, server.port)
    dsn = server.dsn.replace(f":{server.port}/", f":{await relay.start()}/")
    store = PostgresStore.open(dsn, ids=SystemIds(), application="bench")
    bench = Bench(store, relay, Follower(HISTORY_STEPS * STEP_S), SystemClock())
    await bench.fill(jobs)
    with _held_up(asyncio.get_running_loop()) as held_ms:
        first = await bench.look()
        looks = [await _loop(bench) for _ in range(LOOPS)]
    known = await bench.known()
    begun = time.perf_counter()
    series = await asyncio.to_thread(_forecast, known)
    forecast_s = time.perf_counter() - begun
    await store.close()
    await server.stop()
    return {
        "jobs": jobs,
        "take_over_s": round(first[0], 2),
        "take_over_bytes": first[1],
        "loop_ms": round(1000 * statistics.median(each for each, _ in looks), 1),
        "loop_bytes": round(statistics.median(each for _, each in looks)),
        "loop_changes": 2 * CHANGES,
        "event_loop_held_up_ms": round(max(held_ms), 1),
        "forecast_s": round(forecast_s, 2),
        "series": series,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


async def _loop(bench: Bench) -> tuple[float, int]:
    await bench.end(await bench.submit(CHANGES))
    await bench.submit(CHANGES)
    return await bench.look()


@contextmanager
def _held_up(loop: asyncio.AbstractEventLoop) -> Iterator[list[float]]:
    """By how much a tick of 5 ms came late, each time; the longest is what others waited for."""
    late, every = [0.0], 0.005

    async def tick() -> None:
        while True:
            due = loop.time() + every
            await asyncio.sleep(every)
            late.append(1000 * (loop.time() - due))

    ticking = loop.create_task(tick())
    try:
        yield late
    finally:
        ticking.cancel()


def _forecast(known: Known) -> int:
    """How many series."""
    forecaster, found = Forecaster(0), chosen(known)
    for key in found:
        mine = of_queue(known.columns, key.queue, key.kind)
        demand = demand_at(key, mine, known.now, steps=known.steps, step_s=STEP_S)
        futures(demand, forecaster.forecast(demand))
    return len(found)


def _job(number: JobId, size: int, now: float) -> Job:
    queue = QueueName(f"org.team-{number % QUEUES}")
    shape = TaskShape(1000 * size, size << 30, DeviceRequest("H100", size))
    spec = JobSpec("bench", queue, (TaskGroup("main", 1, 1, shapes=(shape,), run="true"),))
    return Job(number, Tenant("bench"), "bench", queue, "bench", spec, priority=0, submitted_at=now)


if __name__ == "__main__":
    main()
