"""The stack that the demo runs on: a throw-away `atoll up`, and the command beside it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ATOLL = Path(sys.executable).with_name("atoll")
NAME = "demo"
SEEN_AFTER_S = 0.5
"""A simulated cluster looks at its control file every 50 ms."""


class Stack:
    """A control plane of its own, in a folder that goes with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        os.environ["ATOLL_STATE_DIR"] = str(folder)
        os.environ["ATOLL_NAME"] = NAME

    def atoll(self, *arguments: str, timeout_s: float = 120) -> "subprocess.CompletedProcess[str]":
        """Run the command, and keep what it says."""
        return subprocess.run(
            [ATOLL, *arguments], capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def shown(self, *arguments: str) -> int:
        """Run the command with its words going where ours go; its exit code."""
        return subprocess.run([ATOLL, *arguments], check=False).returncode

    def write(self, name: str, text: str) -> Path:
        """A file for the command to read."""
        path = self.folder / name
        path.write_text(text)
        return path

    def agent_folder(self, cluster: str) -> Path:
        """Where the agent of a cluster keeps its things."""
        return self.folder / NAME / "data" / "agents" / cluster

    def misbehave(self, cluster: str, how: Mapping[str, Any]) -> None:
        """Tell a simulated cluster how to fail; {} ends it."""
        control = self.agent_folder(cluster) / "misbehave.json"
        draft = control.with_suffix(".new")
        draft.write_text(json.dumps(how))
        draft.replace(control)
        time.sleep(SEEN_AFTER_S)


@contextmanager
def stack() -> Iterator[Stack]:
    """One that can be started; whatever was started is ended, also by signals."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="atoll-demo-"))
    folder.chmod(0o755)  # root's servers run as nobody
    made = Stack(folder)
    try:
        yield made
    finally:
        made.atoll("down")
        shutil.rmtree(folder, ignore_errors=True)
