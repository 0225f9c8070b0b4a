"""Measures the whole path of a job, and the core alone. `make bench`.

Starts a control plane with one simulated cluster, submits from a process of its own at rising
rates, and ends everything it started. Tells what it does on stderr; stdout gets one JSON object,
with a key for each size of the cluster. What is measured and how: docs/benchmarks.md
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from typing import Any, NoReturn

import asyncpg

from tools.bench_numbers import Measured, percentiles
from tools.bench_processes import Meter
from tools.bench_rates import Search
from tools.bench_rows import Rows
from tools.bench_run import ROOT, SUBMITTER, Runner, submitter
from tools.bench_stack import Running, running

PROBE_S = 5.0
WINDOW_S = 20.0
HALF_S = 15.0
WARM_UP = 200.0
"""Jobs per second, for PROBE_S: connections, plans and caches are there afterwards."""
SEARCH_WITHIN_S = 100.0
"""No further rate is tried after so long."""


def main() -> None:
    """Measure all sizes and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_213, 10_000])
    parser.add_argument("--batch", type=int, default=50, help="jobs in a call")
    parser.add_argument("--most", type=float, default=3_000, help="highest rate tried, jobs/s")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    found = {str(nodes): measured(nodes, given.batch, most=given.most) for nodes in given.nodes}
    print(json.dumps(found))


def measured(nodes: int, batch: int, *, most: float) -> dict[str, Any]:
    """All numbers of one size."""
    begun = time.monotonic()
    say(f"{nodes} nodes: starting")
    with running(nodes) as up:
        say(f"{nodes} nodes: up after {time.monotonic() - begun:.0f} s")
        path = asyncio.run(_path(up, batch, most=most))
    say(f"{nodes} nodes: the core alone")
    return path | {"core_placements_per_s": asyncio.run(_core(nodes))}


async def _path(up: Running, batch: int, *, most: float) -> dict[str, Any]:
    connection = await asyncpg.connect(up.dsn)
    try:
        async with submitter(up.endpoint) as process:
            meter = Meter({**up.pids(), SUBMITTER: process.pid})
            runner = Runner(process, Rows(connection), meter, batch=batch)
            return await _numbers(runner, Search(most), meter)
    finally:
        await connection.close()


async def _numbers(runner: Runner, search: Search, meter: Meter) -> dict[str, Any]:
    _tell("warming up", await runner.window(WARM_UP, PROBE_S))
    until = time.monotonic() + SEARCH_WITHIN_S
    while (rate := search.probe()) and time.monotonic() < until:
        search.probed(_tell("rising", await runner.window(rate, PROBE_S)))
    while (rate := search.sustain()) and time.monotonic() < until:
        search.sustained(_tell("sustained", await runner.window(rate, WINDOW_S)))
    best = search.best
    half = _tell("half of it", await runner.window(best.jobs_per_s / 2, HALF_S))
    return {
        "jobs_per_s": round(best.jobs_per_s),
        "window_s": best.seconds,
        "ack_ms": percentiles(half.ack_ms),
        "accepted_ms": percentiles(half.accepted_ms),
        "at_full_rate": {
            "ack_ms": percentiles(best.ack_ms),
            "accepted_ms": percentiles(best.accepted_ms),
        },
        "cpu_ms_per_job": {name: round(ms, 3) for name, ms in best.cpu_ms_per_job.items()},
        "peak_rss_mb": meter.peak_rss_mb(),
        "load_average": round(os.getloadavg()[0], 1),
    }


async def _core(nodes: int) -> int:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tools.bench_core", "--nodes", str(nodes),
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError("tools.bench_core failed")
    return int(json.loads(out.splitlines()[-1])[str(nodes)]["placements_per_s"])


def _tell(what: str, window: Measured) -> Measured:
    cpu = sum(ms for name, ms in window.cpu_ms_per_job.items() if name != SUBMITTER)
    say(
        f"  {what}: {window.rate:.0f} jobs/s wanted, {window.jobs_per_s:.0f} done,"
        f" {window.why_not_held() or 'held'}; accepted ms {percentiles(window.accepted_ms)},"
        f" CPU {cpu:.2f} ms a job, load {os.getloadavg()[0]:.1f}"
    )
    return window


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def _leave(*_: object) -> NoReturn:
    """End as after Ctrl-C: what was started is ended on the way out."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
