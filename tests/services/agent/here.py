"""Looks at runs of the local backend on this machine."""

import json
from pathlib import Path

import psutil

from tests.contract.backends import Opened, attempt
from tests.support.waiting import eventually


def folder(opened: Opened, number: int) -> Path:
    return opened.settings.data_dir / "runs" / f"{number}.1"


async def text(opened: Opened, number: int, rank: int = 0) -> str:
    piece = await opened.backend.read_log(attempt(number), rank, offset=0, limit=1 << 20)
    return piece.data.decode()


async def said(opened: Opened, number: int, word: str) -> None:
    async def holds() -> bool:
        return word in await text(opened, number)

    await eventually(holds)


def dead(pid: int) -> bool:
    # Whoever adopts an orphan may bury it late.
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def wrapper_pid(opened: Opened, number: int) -> int:
    return int(json.loads((folder(opened, number) / "started").read_text())["pid"])
