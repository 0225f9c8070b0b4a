"""The command as a process: start, exit codes, Ctrl-C, pipes, shells."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.cli.table import COMMANDS
from tests.client.fake import Server
from tests.client.world import World

WITHIN_S = 90
COMMAND = [sys.executable, "-m", "atoll.cli"]


@pytest.fixture
def environment(server: Server) -> dict[str, str]:
    return {**os.environ, "ATOLL_ENDPOINT": server.address, "ATOLL_PLACEMENT": server.address}


def ended(
    environment: dict[str, str], *words: str, given: str = ""
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *words], env=environment, capture_output=True, text=True, timeout=WITHIN_S,
        check=False, input=given,
    )  # fmt: skip


@pytest.fixture
def started(environment: dict[str, str]) -> Iterator[object]:
    running: list[subprocess.Popen[str]] = []

    def start(*words: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*COMMAND, *words], env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def play(world: World, job_id: int) -> None:
    world.place(job_id)
    world.start(job_id)
    world.write(job_id, b"hello\n")
    world.end(job_id, 7)


def test_a_hyphen_is_standard_input(environment: dict[str, str], world: World) -> None:
    done = ended(environment, "submit", "-", given="run: hostname")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert world.jobs[1].spec.groups[0].run == "hostname"


def test_a_wrong_option_names_the_page_of_its_command(environment: dict[str, str]) -> None:
    done = ended(environment, "resv", "create", "exam", "--for", "1h")
    assert done.returncode == 2
    assert done.stderr.endswith("see `atoll resv create --help`\n")


def test_version_and_help_load_no_library() -> None:
    script = (
        "import sys; from atoll.cli.main import run; code = run([sys.argv[1]]);"
        "heavy = {'grpc', 'pydantic', 'rich', 'yaml', 'cyclopts', 'google'} & sys.modules.keys();"
        "sys.exit(code or len(heavy))"
    )
    for word in ("version", "--version", "--help"):
        done = subprocess.run([sys.executable, "-c", script, word], timeout=WITHIN_S, check=False)
        assert done.returncode == 0


def test_help_names_every_command_and_each_has_help(environment: dict[str, str]) -> None:
    told = ended(environment, "--help").stdout
    assert all(f"  {command.name} " in told for command in COMMANDS)
    assert ended(environment).stdout == told


def test_help_of_commands_loads_no_grpc() -> None:
    script = (
        "import sys; from atoll.cli.main import run; code = run(['ls', '--help']);"
        "sys.exit(code or 'grpc' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], timeout=WITHIN_S, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr


def test_run_ends_with_the_exit_code_of_the_job(environment: dict[str, str], world: World) -> None:
    world.plays = play
    done = ended(environment, "run", "--", "hostname")
    assert (done.returncode, done.stdout) == (7, "hello\n")


def test_exit_codes_of_a_process(environment: dict[str, str], server: Server) -> None:
    assert ended(environment, "ls").returncode == 0
    assert ended(environment, "lss").returncode == 2
    assert ended(environment, "submit", "--gpus", "0.333", "--", "x").returncode == 3
    assert ended(environment, "get", "9").returncode == 102
    server.stop()
    down = ended(environment, "ls")
    assert down.returncode == 5
    assert f"cannot reach {server.address}" in down.stderr
    assert "atoll up" in down.stderr
    assert "Traceback" not in down.stderr


def test_ctrl_c_detaches_and_tells_how_to_attach_again(started: object, world: World) -> None:
    assert callable(started)
    process = started("run", "--", "sleep", "100")
    until(lambda: 1 in world.jobs)
    world.place(1)
    world.start(1)
    world.write(1, b"hello\n")
    assert process.stdout.readline() == "hello\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 101
    assert "Attach again: atoll logs -f 1" in told
    assert "Traceback" not in told
    assert world.calls["CancelJobs"] == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["wait", "1"], 101, "atoll wait 1"),
        (["logs", "-f", "1"], 101, "atoll logs -f 1"),
        (["watch"], 0, "go on from here: atoll watch --cursor 1"),
    ],
    ids=["wait", "logs", "watch"],
)
def test_ctrl_c_leaves_whatever_follows(
    started: object, world: World, words: list[str], code: int, told: str
) -> None:
    from atoll.api.common.v1 import common_pb2

    assert callable(started)
    if words[0] != "watch":
        world.add(common_pb2.JobSpec(name="x"))
    process = started(*words)
    until(lambda: world.watches > 0)
    if words[0] == "watch":
        world.add(common_pb2.JobSpec(name="x"))
        assert "SUBMITTED" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, told in err, "Traceback" in err) == (code, True, False)


def test_a_reader_that_has_enough_is_no_error(environment: dict[str, str], world: World) -> None:
    from atoll.api.common.v1 import common_pb2

    for _ in range(2_000):
        world.add(common_pb2.JobSpec(name="x" * 100))
    command = f"{sys.executable} -m atoll.cli ls --limit 0 -o json | head -1"
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=WITHIN_S,
        check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[\n", "")


def test_the_launcher_that_is_missing_is_told(environment: dict[str, str]) -> None:
    script = (
        "import sys; sys.modules['atoll.embedded.commands'] = None;"
        "from atoll.cli.main import run; sys.exit(run(['up', '--foreground', 'x']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=WITHIN_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 5
    assert "pip install 'atoll[embedded]'" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_commands_and_options(environment: dict[str, str], shell: str) -> None:
    script = ended(environment, "completion", shell).stdout
    assert all(word in script for word in ("submit", "explain", "num-nodes", "forget"))


def test_bash_completes(environment: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "atoll.bash"
    script.write_text(ended(environment, "completion", "bash").stdout)
    asked = (
        f"source {script}; COMP_WORDS=(atoll sub); COMP_CWORD=1; _atoll;"
        'echo "${COMPREPLY[@]}"; COMP_WORDS=(atoll queue c); COMP_CWORD=2; _atoll;'
        'echo "${COMPREPLY[@]}"; COMP_WORDS=(atoll submit --num); COMP_CWORD=2; _atoll;'
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", asked], capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert [line.strip() for line in done.stdout.splitlines()] == [
        "submit",
        "create",
        "--num-nodes",
    ]


def until(holds: object) -> None:
    assert callable(holds)
    for _ in range(WITHIN_S * 50):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")
