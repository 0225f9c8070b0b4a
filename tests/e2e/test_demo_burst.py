"""The demo of renting, on its short days: real agents come, work, and are gone in the end."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import reachable_folder

ROOT = Path(__file__).parents[2]
WITHIN_S = 500.0

pytestmark = pytest.mark.timeout(WITHIN_S + 60)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where servers find their folders whoever they run as."""
    with reachable_folder() as found:
        yield found


def test_a_load_with_a_peak_is_rented_for_ahead_and_nothing_is_left(folder: Path) -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "tools.demo_burst", "--quick"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    told = demo.stdout[-6000:] + demo.stderr[-2000:]
    assert demo.returncode == 0, told
    found: dict[str, Any] = json.loads(demo.stdout.splitlines()[-1])
    assert found["faults"] == [], told
    assert found["jobs"] == found["succeeded"] == 48
    assert found["rented_ahead"] > 0, told
    assert found["drained_idle"] > 0, told
    assert (found["interrupted"], found["never_booted"]) == (True, True), told
    assert found["left"] == {"rows": [], "processes": []}
    assert not list(folder.iterdir()), "its folder goes with it"
