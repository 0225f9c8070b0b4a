"""Shows how a replay goes, and what came of it."""

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from typing import Any, Final, TypeVar

from atoll.cli.replay.arrivals import Pace, Prepared
from atoll.cli.replay.drive import Progress
from atoll.cli.replay.result import Latency, Result
from atoll.cli.words import plural

OutT = TypeVar("OutT")
MOST_FAULTS: Final = 20
EVERY_S: Final = 0.25
LINE_EVERY_S: Final = 10.0


def beginning(ready: Prepared, pace: Pace, *, run: str, cluster: str) -> None:
    """What is about to be replayed."""
    _say(
        f"replay {run}: {plural(len(ready.arrivals), 'job')} on cluster {cluster}, "
        f"{_speed(pace.speed)} seconds of the trace in one"
    )
    if ready.rounded_up:
        jobs = plural(ready.rounded_up, "job")
        _say(f"note: {jobs} asked for no whole percent of a GPU, and got the next one above")
    if ready.too_large:
        shown = ", ".join(ready.too_large[:3])
        _say(f"note: {plural(len(ready.too_large), 'pod')} fit no node, and are left out: {shown}")


async def shown(work: Coroutine[Any, Any, OutT], progress: Progress) -> OutT:
    """Do the work, with a bar on a terminal, and with a line now and then elsewhere."""
    task = asyncio.ensure_future(work)
    try:
        await (_bar(task, progress) if sys.stderr.isatty() else _lines(task, progress))
        return await task
    finally:
        task.cancel()


def lines(result: Result) -> Iterator[str]:
    """The result as a person reads it."""
    states = ", ".join(f"{count:,} {state}" for state, count in result.states.items())
    yield f"replay {result.run}"
    yield f"jobs             {result.jobs:,} ({states}; {result.rolled_back:,} rolled back)"
    yield f"took             {result.seconds:,.1f} s, {result.jobs_per_second:,.1f} jobs/s"
    yield f"submit->placed   {_latency(result.submit_to_placed_ms)}"
    yield f"submit->accepted {_latency(result.submit_to_accepted_ms)}"
    yield (
        f"GPUs at the peak {result.peak_devices:,.2f} of {result.devices:,} allocated "
        f"({result.peak_percent:.1f}%)"
    )
    yield from _verdict(result)


def _speed(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:g}"


def _verdict(result: Result) -> Iterator[str]:
    seen = f"by jobs' times, {plural(result.looks_at_nodes, 'look')} at the nodes"
    seen += ", the cluster's ledger" if result.ledger_checked else ""
    if not result.overcommitted:
        yield f"over-commitment  none ({seen})"
        return
    yield f"over-commitment  {len(result.overcommitted):,} TIMES ({seen})"
    for fault in result.overcommitted[:MOST_FAULTS]:
        yield f"  {fault}"


def _latency(found: Latency | None) -> str:
    if found is None:
        return "-"
    return f"P50 {found.p50:,.1f} ms, P95 {found.p95:,.1f} ms, P99 {found.p99:,.1f} ms"


async def _bar(task: "asyncio.Future[OutT]", progress: Progress) -> None:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        ids = [
            bar.add_task(word, total=progress.total) for word in ("submitted", "placed", "ended")
        ]
        while not task.done():
            counts = (progress.submitted, progress.placed, progress.ended)
            for task_id, count in zip(ids, counts, strict=True):
                bar.update(task_id, completed=count)
            await asyncio.wait([task], timeout=EVERY_S)


async def _lines(task: "asyncio.Future[OutT]", progress: Progress) -> None:
    while not (await asyncio.wait([task], timeout=LINE_EVERY_S))[0]:
        _say(
            f"{progress.took_s:,.0f} s: {progress.submitted:,} submitted, {progress.placed:,} "
            f"placed, {progress.ended:,} of {progress.total:,} ended"
        )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
