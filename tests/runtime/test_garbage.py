import subprocess
import sys

SETTLED = """
import gc
from atoll.runtime import garbage
kept = [[number] for number in range(1_000)]
garbage.settle()
print(gc.get_freeze_count() > 1_000, *gc.get_threshold())
"""


def test_what_is_there_at_the_start_is_never_looked_at_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SETTLED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["True", "50000", "10", "10"]
