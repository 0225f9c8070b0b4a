"""Runs docker-compose.yml for real. `make test-compose`.

The stack comes up, a job runs, the leading placement container is killed, and another job runs.
Uses the Docker engine that answers, else starts one of its own (root, Debian's docker.io). Images
that no registry gives are built here. It ends what it started; its exit code says how it went.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools import compose_images
from tools.compose_engine import CommandFailed, Engine, NoEngine, engine

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = Path(sys.executable).with_name("docker-compose")
PLACEMENTS = ("placement-1", "placement-2")
RESERVATIONS = ("reservation-1", "reservation-2")
BROKERS = ("burst-1", "burst-2")
OURS = ("migrate", "submission", *PLACEMENTS, "dispatch", *RESERVATIONS, *BROKERS, "agent")
UP_WITHIN_S = 600
JOB_WITHIN_S = 240.0
LEADER_WITHIN_S = 120.0
STRANGER = "12345:23456"
"""A user that the image does not know, as clusters choose them."""
LEADING = """
import ssl, urllib.request
trust = ssl.create_default_context(cafile="/run/atoll/ca.pem")
page = urllib.request.urlopen("https://localhost:7073/metrics", context=trust, timeout=5).read()
print(int(b"atoll_placement_leading_info 1.0" in page))
"""


class Failed(Exception):
    """Something is not as it must be."""


def main() -> int:
    """Run everything; 0 when all of it went well."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    try:
        with (
            tempfile.TemporaryDirectory(prefix="atoll-engine-", ignore_cleanup_errors=True) as name,
            engine(Path(name)) as found,
        ):
            say("an engine of our own" if found.own else "the engine that is here")
            images = compose_images.provide(found, say)
            check_image(found, say)
            with stack(found, images, say) as up:
                check_stack(up, say)
    except (CommandFailed, Failed, NoEngine, subprocess.TimeoutExpired) as error:
        say(f"FAILED: {error}")
        return 1
    say("all is well, and everything is down again")
    return 0


class Stack:
    """The compose project while it is up."""

    def __init__(self, on: Engine, project: str) -> None:
        self.engine = on
        self._command = [
            str(COMPOSE), "--project-name", project, "--file", str(ROOT / "docker-compose.yml"),
        ]  # fmt: skip

    def compose(
        self, *arguments: str, timeout_s: float = 120, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run a compose command."""
        return self.engine.run([*self._command, *arguments], timeout_s=timeout_s, check=check)

    def client(
        self, *arguments: str, env: Sequence[str] = (), check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run the `atoll` command in a container of its own."""
        variables = [part for pair in env for part in ("--env", pair)]
        return self.compose(
            "run", "--rm", "--no-TTY", "--no-deps", *variables, "client", *arguments,
            timeout_s=JOB_WITHIN_S, check=check,
        )  # fmt: skip

    def container(self, service: str) -> str:
        """The id of a service's container, running or not."""
        return self.compose("ps", "--all", "--quiet", service).stdout.strip()

    def running(self, service: str) -> bool:
        """Whether a service's container runs."""
        found = self.engine.docker("inspect", self.container(service)).stdout
        return bool(json.loads(found)[0]["State"]["Running"])

    def leads(self, service: str) -> bool:
        """Whether a placement replica says that it leads."""
        if not self.running(service):
            return False
        asked = self.compose("exec", "-T", service, "python", "-c", LEADING, check=False)
        return asked.stdout.strip() == "1"

    def leader(self) -> str:
        """The leading replica, as soon as there is exactly one."""
        return self.leader_among(PLACEMENTS)

    def leader_among(self, replicas: Sequence[str]) -> str:
        """The same among some replicas; raises Failed after a while."""

        def one() -> str:
            leading = [service for service in replicas if self.leads(service)]
            return leading[0] if len(leading) == 1 else ""

        return eventually(one, "a placement leader", within_s=LEADER_WITHIN_S)


@contextmanager
def stack(on: Engine, images: dict[str, str], say: Callable[[str], None]) -> Iterator[Stack]:
    """The project, up and healthy; gone with its volumes afterwards."""
    named = Engine(on.environment | images | {"SUBMISSION_PORT": "0"}, own=on.own)
    up = Stack(named, "atoll-test")
    try:
        up.compose(
            "up", "--detach", "--no-build", "--wait", "--wait-timeout", str(UP_WITHIN_S),
            timeout_s=UP_WITHIN_S + 60,
        )  # fmt: skip
        say("up and healthy")
        yield up
    except (CommandFailed, Failed, subprocess.TimeoutExpired):
        print(up.compose("ps", "--all", check=False).stdout)
        print(up.compose("logs", "--no-color", "--tail", "15", *OURS, check=False).stdout)
        raise
    finally:
        say("down")
        up.compose(
            "--profile", "*", "down", "--volumes", "--timeout", "20", timeout_s=300, check=False
        )


def check_image(on: Engine, say: Callable[[str], None]) -> None:
    """Its size, its user, and that no placement would compile."""
    image = json.loads(on.docker("image", "inspect", compose_images.ATOLL).stdout)[0]
    say(f"the image has {image['Size'] / 1e6:.0f} MB and runs as {image['Config']['User']}")
    if image["Config"]["User"].partition(":")[0] in {"", "0", "root"}:
        raise Failed("the image runs as root")
    for user in (image["Config"]["User"], STRANGER):
        told = on.docker(
            "run", "--rm", "--read-only", "--tmpfs", "/tmp", "--user", user,
            compose_images.ATOLL, "kernels", "--check",
            timeout_s=300,
        )  # fmt: skip
        say(f"as {user}: {told.stdout.strip()}")


def check_stack(up: Stack, say: Callable[[str], None]) -> None:
    """Jobs run, without TLS nobody gets in, and the death of a leader stops nothing."""
    run_job(up, "first")
    say("a job ran")
    up.client("queue", "ls")
    if up.client("queue", "ls", env=["ATOLL_TLS=off"], check=False).returncode == 0:
        raise Failed("a caller without TLS was served")
    say("a caller without TLS was not served")
    leader = up.leader()
    up.engine.docker("kill", "--signal", "KILL", up.container(leader))
    if up.running(leader):
        raise Failed(f"{leader} still runs")
    say(f"killed {leader}, which led")
    run_job(up, "second")
    others = [service for service in PLACEMENTS if service != leader]
    say(f"another job ran; now {up.leader_among(others)} leads")
    up.compose("up", "--detach", "--no-build", "--wait", leader, timeout_s=UP_WITHIN_S)
    say(f"{leader} is back; {up.leader()} leads")


def run_job(up: Stack, name: str) -> None:
    """Submit a command, follow it to its end, and see what it printed."""
    said = up.client("run", "--name", name, "--", "echo", f"{name} job ran on compose").stdout
    if f"{name} job ran on compose" not in said:
        raise Failed(f"the {name} job printed something else:\n{said}")


def eventually(look: Callable[[], str], what: str, *, within_s: float) -> str:
    """The first answer that is not empty; raises Failed."""
    until = time.monotonic() + within_s
    while True:
        if answer := look():
            return answer
        if time.monotonic() > until:
            raise Failed(f"no {what} within {within_s:.0f} s")
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
