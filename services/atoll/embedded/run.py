"""The supervisor process from its first act to its last."""

import asyncio
import os
import signal
from pathlib import Path

from atoll.adapters.system import SystemClock, SystemIds
from atoll.embedded.clusters import read_clusters
from atoll.embedded.housekeeping import Housekeeper, adopt_orphans, end_descendants
from atoll.embedded.layout import Layout
from atoll.embedded.lock import FolderLock
from atoll.embedded.parts import PartFailed
from atoll.embedded.stack import Stack
from atoll.embedded.state import Board, Failure, Phase, Report
from atoll.embedded.supervisor import Supervisor
from atoll.runtime import logs

log = logs.logger(__name__)


async def run(layout: Layout) -> int:
    """Bring the stack up, keep it until SIGTERM or SIGINT, end it; the exit code."""
    stop = _stop_on_signals()
    await FolderLock.take(layout.lock)  # freed by the kernel when this process ends
    adopt_orphans()
    clock = SystemClock()
    report = Report(name=layout.name, pid=os.getpid(), started_at=clock.now())
    board = Board(layout.report, report)
    supervisor = Supervisor(board, clock=clock, ids=SystemIds())
    stack = Stack(layout, board, supervisor, clusters=read_clusters(layout.clusters))
    keeper = Housekeeper(clock, logs=lambda: _logs(layout, board), ours=lambda: _pids(board))
    tidying = asyncio.create_task(keeper.run())
    failure = await _until_stopped(stack, stop, board)
    tidying.cancel()
    await _end(supervisor, layout, board)
    board.tell(step="", failure=failure, phase=Phase.FAILED if failure else Phase.STOPPED)
    return 1 if failure else 0


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def _until_stopped(stack: Stack, stop: asyncio.Event, board: Board) -> Failure | None:
    """Bring it up and wait for the signal; why it did not come up, if it did not."""
    coming = asyncio.create_task(stack.up())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({coming, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not coming.done():
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        return None
    if (error := coming.exception()) is not None:
        stopped.cancel()
        return _failure(error)
    log.info("ready", parts=len(board.report.parts))
    await stopped
    return None


async def _end(supervisor: Supervisor, layout: Layout, board: Board) -> None:
    log.info("stopping")
    board.tell(phase=Phase.STOPPING, step="ending all processes")
    layout.endpoints.unlink(missing_ok=True)
    await supervisor.end()
    if left := end_descendants():
        log.info("ended what services left behind", processes=left)
    layout.forget()


def _failure(error: BaseException) -> Failure:
    log.error("did not come up", exc_info=error)
    match error:
        case PartFailed():
            return Failure(what=str(error), log=str(error.log), tail=error.tail)
        case _:
            return Failure(what=f"{type(error).__name__}: {error}")


def _logs(layout: Layout, board: Board) -> list[Path]:
    named = {Path(view.log) for view in board.report.parts if view.log}
    return sorted(named | {layout.log("supervisor")})


def _pids(board: Board) -> list[int]:
    return [view.pid for view in board.report.parts if view.pid is not None]
