"""Starts the supervisor as a process of its own, and follows it to where it is wanted."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Container
from typing import Final

from atoll.embedded.layout import Layout
from atoll.embedded.lock import holder
from atoll.embedded.progress import Progress
from atoll.embedded.state import Phase, Report, read_report
from atoll.runtime.servers.process import find

LOOK_EVERY_S: Final = 0.1
END_WITHIN_S: Final = 180.0
LAST_BREATH_S: Final = 5.0
"""From giving the folder up to being gone."""
PASSED_ON: Final = frozenset({"ATOLL_STATE_DIR", "ATOLL_LOG_LEVEL"})
"""Other settings in the environment are meant for the client, or would bend the stack."""


def launch(layout: Layout) -> "subprocess.Popen[bytes]":
    """Start the supervisor in a session of its own: no terminal's end or Ctrl-C reaches it."""
    log = layout.log("supervisor")
    log.touch(mode=0o600)
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "atoll.embedded", marker(layout), layout.name],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=_environment(),
            start_new_session=True,
        )


def marker(layout: Layout) -> str:
    """The supervisor's argument that no other process has."""
    return str(layout.data)


def running(layout: Layout) -> Report | None:
    """The report of the supervisor that runs now, or None."""
    pid = holder(layout.lock)
    report = read_report(layout.report)
    return report if pid is not None and report is not None and report.pid == pid else None


async def follow(
    layout: Layout, *, until: Container[Phase], alive: Callable[[], bool], progress: Progress
) -> Report | None:
    """Show the stack until it is in one of the phases; the last report of a dead supervisor."""
    while True:
        lived = alive()
        report = read_report(layout.report)
        if report is not None:
            progress.show(report)
            if report.phase in until:
                return report
        if not lived:
            return report
        await asyncio.sleep(LOOK_EVERY_S)


async def end(layout: Layout, progress: Progress) -> bool:
    """End the supervisor that runs now, and with it all it started; False when none runs."""
    pid = holder(layout.lock)
    process = find(pid, marker(layout)) if pid is not None else None
    if process is None:
        return False
    process.send(signal.SIGTERM)
    try:
        async with asyncio.timeout(END_WITHIN_S):
            await follow(layout, until=(), alive=lambda: _held(layout), progress=progress)
        await process.ended(LAST_BREATH_S)
    except TimeoutError:
        process.send_to_all(signal.SIGKILL)
        layout.forget()
    return True


def _held(layout: Layout) -> bool:
    return holder(layout.lock) is not None


def _environment() -> dict[str, str]:
    return {
        key: text
        for key, text in os.environ.items()
        if not key.startswith("ATOLL_") or key in PASSED_ON
    }
