"""Points at which a test makes a process die: inert unless asked for by name."""

import os
import signal
import subprocess
import sys

import pytest

from atoll.runtime import failpoints

PASSES = "from atoll.runtime import failpoints\nfor n in range(3):\n    print(n, flush=True)\n"


def passing(value: str) -> "subprocess.CompletedProcess[str]":
    """A process that passes the point `here` three times, and `there` never."""
    environment = dict(os.environ) | {failpoints.VARIABLE: value}
    program = PASSES + "    failpoints.hit('here')\n"
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("value", "printed", "code"),
    [
        ("", "0\n1\n2\n", 0),
        ("there", "0\n1\n2\n", 0),
        ("here", "0\n", -signal.SIGKILL),
        ("there,here:exit:2", "0\n1\n", failpoints.EXIT_CODE),
        ("here:kill:4", "0\n1\n2\n", 0),
    ],
)
def test_the_nth_pass_of_an_armed_point_is_the_last(value: str, printed: str, code: int) -> None:
    done = passing(value)
    assert (done.stdout, done.returncode) == (printed, code)


def test_a_paused_process_goes_on_where_it_was() -> None:
    environment = dict(os.environ) | {failpoints.VARIABLE: "here:pause"}
    program = PASSES + "    failpoints.hit('here')\n"
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=60)
    assert out == "0\n1\n2\n"


@pytest.mark.parametrize("value", ["here:explode", "here:kill:soon"])
def test_nonsense_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="here"):
        failpoints.parse(value)
