"""Stacks of fake services, in folders that the servers' account can reach."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from atoll.adapters.system import SystemClock, SystemIds
from atoll.embedded.state import Board, Report
from atoll.embedded.supervisor import Supervisor
from tests.services.embedded.fakes import Fakes


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not tmp_path: root's is closed to nobody, as whom root's servers run."""
    path = Path(tempfile.mkdtemp(prefix="atoll-up-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def fakes(folder: Path) -> Iterator[Fakes]:
    made = Fakes(folder)
    yield made
    for pid in made.pids():
        if pid != os.getpid() and psutil.pid_exists(pid):
            psutil.Process(pid).kill()


@pytest.fixture
def board(folder: Path) -> Board:
    return Board(folder / "report.json", Report(name="test", pid=os.getpid(), started_at=0.0))


@pytest.fixture
async def supervisor(board: Board) -> AsyncIterator[Supervisor]:
    made = Supervisor(board, clock=SystemClock(), ids=SystemIds())
    yield made
    await made.end()
