"""The supervisor over real processes that are fake services."""

import asyncio
import os
import signal
import subprocess
import sys

import psutil
import pytest

from atoll.embedded.parts import PartFailed
from atoll.embedded.state import Board, PartState, read_report
from atoll.embedded.supervisor import Supervisor
from tests.services.embedded.fakes import FAKE, Fakes, until


async def test_a_stage_is_healthy_when_start_returns(
    fakes: Fakes, supervisor: Supervisor, board: Board
) -> None:
    await supervisor.start([fakes.part("a"), fakes.part("b")])
    views = {view.name: view for view in board.report.parts}
    assert {view.state for view in views.values()} == {PartState.HEALTHY}
    assert all(view.pid is not None and psutil.pid_exists(view.pid) for view in views.values())


async def test_a_part_that_dies_is_started_again_and_counted(
    fakes: Fakes, supervisor: Supervisor, board: Board
) -> None:
    await supervisor.start([fakes.part("a"), fakes.part("b")])
    died = board.view("a").pid
    assert died is not None
    os.kill(died, signal.SIGKILL)
    await until(lambda: board.view("a").restarts == 1 and board.view("a").pid is not None)
    assert board.view("a").pid != died
    assert board.view("a").state is PartState.HEALTHY
    assert board.view("b").restarts == 0
    assert fakes.told("begun").count("a") == 2


async def test_a_part_that_is_frozen_shows_as_unready_and_recovers(
    fakes: Fakes, supervisor: Supervisor, board: Board
) -> None:
    await supervisor.start([fakes.part("a")])
    pid = board.view("a").pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: board.view("a").state is PartState.UNREADY)
    os.kill(pid, signal.SIGCONT)
    await until(lambda: board.view("a").state is PartState.HEALTHY)
    assert board.view("a").restarts == 0


async def test_the_last_stage_ends_first(fakes: Fakes, supervisor: Supervisor) -> None:
    for name in ("first", "second", "third"):
        await supervisor.start([fakes.part(name)])
    await supervisor.end()
    assert fakes.told("ended") == ["third", "second", "first"]


async def test_a_part_that_ignores_sigterm_is_killed_and_does_not_keep_the_others(
    fakes: Fakes, supervisor: Supervisor, board: Board
) -> None:
    await supervisor.start([fakes.part("first")])
    await supervisor.start([fakes.part("second", "hangs")])
    await supervisor.end()
    assert fakes.told("ended") == ["first"]
    assert not any(psutil.pid_exists(pid) for pid in fakes.pids())
    assert {view.state for view in board.report.parts} == {PartState.ENDED}


async def test_a_frozen_part_ends_too(fakes: Fakes, supervisor: Supervisor, board: Board) -> None:
    await supervisor.start([fakes.part("a")])
    pid = board.view("a").pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await supervisor.end()
    assert not psutil.pid_exists(pid)


async def test_a_part_that_cannot_start_fails_the_stage_with_the_end_of_its_log(
    fakes: Fakes, supervisor: Supervisor
) -> None:
    with pytest.raises(PartFailed) as failed:
        await supervisor.start([fakes.part("good"), fakes.part("bad", "broken")])
    assert "bad ended while starting" in str(failed.value)
    assert failed.value.tail.splitlines() == ["the reason why it is broken"]
    assert fakes.told("begun").count("bad") == 3
    await supervisor.end()
    assert not any(psutil.pid_exists(pid) for pid in fakes.pids())


async def test_a_part_that_never_gets_ready_is_not_left_running(fakes: Fakes) -> None:
    for within_s in (1.5, 6.0, 24.0):  # on a busy machine, even to begin takes long
        part = fakes.part("slow", "never-ready", ready_within_s=within_s)
        with pytest.raises(PartFailed, match="slow is not ready after"):
            await part.start()
        if fakes.told("begun"):
            break
    assert fakes.told("begun") == ["slow"]
    assert not any(psutil.pid_exists(pid) for pid in fakes.pids())


async def test_who_took_the_port_of_a_part_does_not_make_it_ready(
    fakes: Fakes, supervisor: Supervisor
) -> None:
    good = fakes.part("good")
    await supervisor.start([good])
    other = fakes.part("other", port=int(good.metrics.rpartition(":")[2]))
    with pytest.raises(PartFailed, match="other ended while starting") as failed:
        await other.start()
    assert "Address already in use" in failed.value.tail


async def test_a_restart_is_told(fakes: Fakes, supervisor: Supervisor, board: Board) -> None:
    told: list[int | None] = []
    await supervisor.start([fakes.part("a")])
    supervisor.after_restart(lambda: told.append(board.view("a").pid))
    died = board.view("a").pid
    assert died is not None
    os.kill(died, signal.SIGKILL)
    await until(lambda: bool(told))
    assert told == [board.view("a").pid] != [died]


async def test_ending_while_a_stage_is_starting_leaves_nothing(
    fakes: Fakes, supervisor: Supervisor
) -> None:
    starting = asyncio.create_task(supervisor.start([fakes.part("slow", "never-ready")]))
    await until(lambda: fakes.told("begun") == ["slow"])
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await supervisor.end()
    assert not any(psutil.pid_exists(pid) for pid in fakes.pids())


async def test_the_file_says_what_the_board_says(
    fakes: Fakes, supervisor: Supervisor, board: Board
) -> None:
    await supervisor.start([fakes.part("a")])
    assert read_report(fakes.folder / "report.json") == board.report


def test_what_a_part_leaves_behind_is_ended_with_the_supervisor(fakes: Fakes) -> None:
    """In a process of its own: it makes that process the one that adopts orphans."""
    fakes.part("a", "leaves-child")
    (port,) = fakes.names
    script = f"""
import asyncio, sys
from pathlib import Path
from atoll.embedded.housekeeping import adopt_orphans, end_descendants
from atoll.embedded.parts import Service, ServicePart
async def main():
    adopt_orphans()
    folder = Path({str(fakes.folder)!r})
    argv = (sys.executable, {str(FAKE)!r}, "{port}", {str(fakes.witness)!r},
            "leaves-child")
    service = Service(argv, folder, "", "127.0.0.1:{port}")
    part = ServicePart("a", folder / "a.log", lambda: service)
    await part.start()
    await part.end()
    print(end_descendants())
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["1"], done.stderr
    assert len(fakes.pids()) == 2
    assert not any(psutil.pid_exists(pid) for pid in fakes.pids())
