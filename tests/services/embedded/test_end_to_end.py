"""The real stack, by the command: up, run, down, up again, and what must not be left behind."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from atoll.embedded.layout import Layout
from atoll.embedded.lock import holder
from atoll.embedded.ports import USUAL
from tests.services.embedded.fakes import until

UP_WITHIN_S = 300


class Stack:
    """One stack in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.environment = os.environ | {"ATOLL_STATE_DIR": str(folder), "NO_COLOR": "1"}
        self.layout = Layout(name="default", data=folder / "default" / "data")

    def atoll(self, *words: str, code: int = 0) -> str:
        """Run a command that has to end with this code; what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "atoll.cli", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=UP_WITHIN_S,
            check=False,
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Run a command in the background."""
        return subprocess.Popen(
            [sys.executable, "-m", "atoll.cli", *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    async def says(self, process: "subprocess.Popen[str]", begin: str) -> None:
        """Wait for a line of stdout that begins so."""
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        assert line.startswith(begin), line or process.communicate()[1]

    async def doctor(self) -> str:
        """What the command prints once it finds nothing bad: a busy part may answer late."""
        printed = ""

        def is_well() -> bool:
            nonlocal printed
            command = [sys.executable, "-m", "atoll.cli", "doctor"]
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, check=False
            )
            printed = done.stdout
            return done.returncode == 0

        await until(is_well, within_s=180)
        return printed

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.atoll("status", "-o", "json")))

    def rented(self) -> list[str]:
        """State of every instance that there ever was, the latest first."""
        lines = self.atoll("burst", "instances", "--all", "-o", "jsonl").splitlines()
        return [json.loads(line)["state"] for line in lines]

    def processes(self) -> list[psutil.Process]:
        """The supervisor and everything below it."""
        pid = holder(self.layout.lock)
        assert pid is not None
        return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


@pytest.fixture
def stack(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    monkeypatch.setenv("ATOLL_STATE_DIR", str(folder))
    made = Stack(folder)
    yield made
    made.atoll("down")


def is_well(status: dict[str, Any]) -> bool:
    """Whether all parts are healthy, and somebody leads: a busy part may answer late once."""
    return bool(status["leader"]) and {p["state"] for p in status["processes"]} == {"healthy"}


def gone(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs; one that waits to be collected does not."""
    return not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def usual_port_taken() -> Iterator[int]:
    """That of submission: by us, or by whoever has it already."""
    with socket.socket() as taken:
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", USUAL["submission"]))
            taken.listen()
        yield USUAL["submission"]


async def test_jobs_and_addresses_are_kept_over_down_and_up(
    stack: Stack, usual_port_taken: int
) -> None:
    stack.atoll("up")
    assert stack.atoll("run", "--", "echo it works").strip() == "it works"
    await until(lambda: is_well(stack.status()), within_s=180)
    before = stack.status()
    addresses = [part["address"] for part in before["processes"]]
    assert f"127.0.0.1:{usual_port_taken}" not in addresses
    assert "the database is at migration" in await stack.doctor()
    assert [cluster["name"] for cluster in before["clusters"]] == ["local"]
    assert f"process {before['pid']}" in stack.atoll("up")
    stack.atoll("up", "--clusters", "simulated", code=4)
    stack.atoll("burst", "request", "process/here/process/spot", "--keep", "1h")
    await until(lambda: stack.rented() == ["READY"], within_s=180)
    assert "is rented: ACTIVE" in await stack.doctor()
    processes = stack.processes()
    assert [p for p in processes if "rented" in " ".join(p.cmdline())]
    stack.atoll("down")
    await until(lambda: gone(processes))
    assert not stack.layout.endpoints.exists()
    stack.atoll("status", code=5)
    stack.atoll("up")
    jobs = [json.loads(line) for line in stack.atoll("ls", "-o", "jsonl").splitlines()]
    assert [job["state"] for job in jobs] == ["SUCCEEDED"]
    assert [part["address"] for part in stack.status()["processes"]] == addresses
    # It was to be kept: another one takes its place.
    await until(lambda: stack.rented() == ["READY", "TERMINATED"], within_s=180)


async def test_what_dies_is_started_again_and_nothing_outlives_the_supervisor(
    stack: Stack,
) -> None:
    stack.atoll("up")
    processes = {part["name"]: part for part in stack.status()["processes"]}
    for name in ("submission", "valkey", "agent-local"):
        os.kill(processes[name]["pid"], signal.SIGKILL)

    def restarted() -> bool:
        now = json.loads(stack.layout.report.read_text())["parts"]
        return {part["name"] for part in now if part["restarts"]} == {
            "submission",
            "valkey",
            "agent-local",
        } and {part["state"] for part in now} == {"healthy"}

    await until(restarted, within_s=180)
    assert stack.atoll("run", "--", "echo still works").strip() == "still works"
    left = stack.processes()
    os.kill(left[0].pid, signal.SIGKILL)
    await until(lambda: gone(left))
    stack.atoll("status", code=5)
    stack.atoll("up")
    assert stack.atoll("run", "--", "echo works again").strip() == "works again"


async def test_in_the_foreground_ctrl_c_ends_everything(stack: Stack) -> None:
    up = stack.start("up", "--foreground")
    await stack.says(up, "Atoll is up")
    processes = stack.processes()
    up.send_signal(signal.SIGINT)
    out, _ = up.communicate(timeout=120)
    assert up.returncode == 0
    assert "Atoll is down" in out
    await until(lambda: gone(processes))


async def test_a_stack_that_cannot_come_up_says_why_and_leaves_nothing(
    stack: Stack, folder: Path
) -> None:
    file = folder / "clusters.yaml"
    file.write_text("clusters: [{name: odd, settings: {measure_lod: false}}]")
    up = stack.start("up", "--clusters", str(file))
    await until(stack.layout.report.exists, within_s=UP_WITHIN_S)
    supervisor = psutil.Process(json.loads(stack.layout.report.read_text())["pid"])
    _, err = up.communicate(timeout=UP_WITHIN_S)
    assert up.returncode == 1
    assert "agent-odd ended while starting" in err
    assert "measure_load" in err
    await until(lambda: gone([supervisor]))
    stack.atoll("status", code=5)
