"""A Docker engine for tests: the one that answers, or one of our own behind a closed door."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

READY_WITHIN_S = 60.0
STOPPED_WITHIN_S = 60.0
ADDRESSES = ("--bip", "172.30.0.1/24", "--default-address-pool", "base=172.31.0.0/16,size=24")


class NoEngine(Exception):
    """There is no engine and none can be started; the message says what is missing."""


class Engine:
    """Runs docker and compose against one engine."""

    def __init__(self, environment: Mapping[str, str], *, own: bool) -> None:
        self.environment = dict(environment)
        self.own = own

    def docker(
        self, *arguments: str, timeout_s: float = 60, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run a docker command, and keep what it says."""
        return self.run(["docker", *arguments], timeout_s=timeout_s, check=check)

    def run(
        self, command: Sequence[str], *, timeout_s: float, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run any command against this engine; raises CalledProcessError with what it said."""
        done = subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if check and done.returncode:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
            raise CommandFailed(f"{' '.join(command)}: exit code {done.returncode}\n{said}")
        return done

    def has(self, image: str) -> bool:
        """Whether the image is there, or can be had from a registry."""
        if self.docker("image", "inspect", image, check=False).returncode == 0:
            return True
        try:
            return self.docker("pull", "-q", image, timeout_s=600, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False


class CommandFailed(Exception):
    """A command failed; the message has the end of what it said."""


@contextmanager
def engine(folder: Path) -> Iterator[Engine]:
    """The engine that DOCKER_HOST or the default names, else one that ends with the block."""
    found = Engine(os.environ, own=False)
    if shutil.which("docker") and found.docker("info", check=False).returncode == 0:
        yield found
        return
    with _own_engine(folder) as started:
        yield started


@contextmanager
def _own_engine(folder: Path) -> Iterator[Engine]:
    if os.getuid() or not all(map(shutil.which, ("docker", "dockerd", "ip", "nsenter"))):
        raise NoEngine("no Docker engine answers; starting one needs root, docker.io and iproute2")
    folder.mkdir(parents=True, exist_ok=True)
    namespace = f"atoll-{os.getpid()}"
    _ip("netns", "add", namespace)
    try:
        _ip("-n", namespace, "link", "set", "lo", "up")
        daemon = _dockerd(folder, namespace)
        try:
            started = Engine(os.environ | {"DOCKER_HOST": f"unix://{folder}/docker.sock"}, own=True)
            _await_ready(started, daemon, folder / "log")
            yield started
        finally:
            _end(daemon)
    finally:
        _ip("netns", "del", namespace)


def _dockerd(folder: Path, namespace: str) -> "subprocess.Popen[bytes]":
    # In a network namespace of its own it changes neither addresses nor rules of this machine.
    # `ip netns exec` would also mount another /sys.
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [
                "nsenter", f"--net=/run/netns/{namespace}",
                "dockerd", "--host", f"unix://{folder}/docker.sock",
                "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"),
                "--pidfile", str(folder / "pid"), *ADDRESSES,
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )  # fmt: skip


def _await_ready(started: Engine, daemon: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + READY_WITHIN_S
    while started.docker("info", check=False).returncode:
        if daemon.poll() is not None or time.monotonic() > until:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            raise NoEngine(f"dockerd does not come up:\n{tail}")
        time.sleep(0.3)


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    daemon.send_signal(signal.SIGTERM)
    try:
        daemon.wait(STOPPED_WITHIN_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=20)
