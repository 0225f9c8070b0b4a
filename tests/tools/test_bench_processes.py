import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tools.bench_processes import Meter, peak_bytes

# Burns CPU itself, and in a child that has ended and in one that lives on; then says so and waits.
BUSY = """
import subprocess, sys, time
burn = "import time\\nwhile time.process_time() < 0.2: pass\\n"
subprocess.run([sys.executable, "-c", burn], check=True)
tell = burn + "print('burnt', flush=True)\\nimport sys; sys.stdin.read()"
child = subprocess.Popen(
    [sys.executable, "-c", tell], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
child.stdout.readline()
exec(burn)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def busy() -> Iterator[int]:
    """Process id of one that has burnt 0.2 s three times over."""
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.communicate()


def test_children_count_with_the_process_that_has_started_them(busy: int) -> None:
    meter = Meter({"placement": busy, "supervisor": os.getpid()})
    # Each of the three loses up to two ticks of 10 ms; without one of them it would be 0.4.
    assert meter.cpu_s()["placement"] >= 0.5


def test_memory_is_the_most_that_was_seen(busy: int) -> None:
    meter = Meter({"placement": busy, "test": os.getpid()})
    assert meter.peak_rss_mb() == {"placement": 0, "test": 0}
    meter.look()
    seen = meter.peak_rss_mb()
    assert seen["placement"] > 0
    assert seen["test"] > 0
    meter.look()
    assert meter.peak_rss_mb()["test"] >= seen["test"]


def test_a_process_that_has_gone_used_nothing(busy: int) -> None:
    gone = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
    meter = Meter({"gone": gone.pid})
    gone.communicate()
    assert meter.cpu_s() == {"gone": 0.0}
    meter.look()
    assert meter.peak_rss_mb() == {"gone": 0}
    assert peak_bytes(gone.pid) == 0
