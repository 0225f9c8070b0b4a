"""Prepares a run's folder and starts its wrapper."""

import json
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from atoll.agent.localrun import wrapper
from atoll.agent.localrun.cgroups import Cgroups
from atoll.agent.localrun.cutting import Cut
from atoll.agent.localrun.environment import Place, environment, members
from atoll.agent.localrun.folders import Held, write_held
from atoll.agent.localrun.processes import write_whole
from atoll.core.model.ids import attempt_name, job_of
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.spec import OnLost
from atoll.ports.backend import ResizeOrder, StartOrder

MEMBERS: Final = "members.json"
"""Who belongs to the run; it is replaced when the run changes its size."""
WORD_WITHIN_S: Final = 20.0
ROOT: Final = str(Path(wrapper.__file__).parents[3])
START: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from atoll.agent.localrun.wrapper import main; main()"
)
SHELL: Final = shutil.which("bash") or "/bin/sh"
BOTH: Final = 'set -e; . "$0"; set +e; . "$1"'


@dataclass(frozen=True, slots=True)
class Site:
    """What all runs here have in common."""

    lease: Path
    cgroups: Cgroups
    base_env: Mapping[str, str]
    max_grace_s: float
    cut: Cut
    """Makes the devices what the tasks were given."""


def launch(folder: Path, order: StartOrder, place: Place, *, site: Site) -> str:
    """Start the wrapper; what it said: `started`, `taken`, `lease`, or nothing. Blocks.

    Raises OSError when folder or devices cannot be prepared; then nothing was started.
    """
    place = replace(place, node=site.cut(place.node, order.tasks))
    written = json.dumps(prepare(folder, order, place, site=site))
    with (folder / "wrapper.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", START, ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            env={"PATH": site.base_env.get("PATH", "")},
            start_new_session=True,
        )
    with process:
        return _hand_over(process, written)


def prepare(folder: Path, order: StartOrder, place: Place, *, site: Site) -> dict[str, Any]:
    """Make the folder, and what the wrapper is to be told."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "work").mkdir(exist_ok=True)
    spec = order.spec
    write_held(folder, held_by(order, place))
    write_whole(folder / MEMBERS, members(order, place))
    ranks = [_rank(folder, order, task, place=place, site=site) for task in order.tasks]
    checkpoint = spec.checkpoint
    return {
        "folder": str(folder),
        "ranks": ranks,
        "checkpoint_signal": signal_number(checkpoint.signal) if checkpoint else 0,
        "checkpoint_grace_s": checkpoint.grace_s if checkpoint else 0.0,
        "grace_s": spec.grace_s,
        "max_grace_s": site.max_grace_s,
        "time_limit_s": spec.time_limit_s,
        "lease": str(site.lease) if spec.on_lost is OnLost.REQUEUE else "",
        "cgroups": [group for rank in ranks for group in rank["cgroups"]],
    }


def prepare_resize(folder: Path, order: ResizeOrder, place: Place, *, site: Site) -> None:
    """Put the new size where the wrapper looks for it, and where the ranks do. Blocks."""
    start = order.start
    place = replace(place, node=site.cut(place.node, start.tasks))
    ranks = [_rank(folder, start, task, place=place, site=site) for task in start.tasks]
    secrets = dict(start.spec.secrets)
    for rank in ranks:
        # Secrets are not written down: the wrapper has them of the ranks that it began with.
        rank["env"] = {key: value for key, value in rank["env"].items() if key not in secrets}
    write_whole(folder / MEMBERS, members(start, place))
    wanted = {"generation": order.generation, "ranks": ranks, "secrets": list(secrets)}
    write_whole(folder / "resize", json.dumps(wanted))


def held_by(order: StartOrder, place: Place) -> Held:
    """What an attempt holds of the machine while it runs."""
    checkpoint_s = order.spec.checkpoint.grace_s if order.spec.checkpoint else 0.0
    ports = (*order.spec.ports, place.master_port)
    return Held(order.tasks, ports, checkpoint_s + order.spec.grace_s)


def signal_number(name: str) -> int:
    """`SIGUSR1` or `USR1`; 0 for a name that this machine does not know."""
    full = name if name.startswith("SIG") else f"SIG{name}"
    found = signal.Signals.__members__.get(full)
    return int(found) if found is not None else 0


def port_is_free(port: int) -> bool:
    """Whether a server could listen on it now; connections that linger do not count."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError:
            return False
    return True


def first_free(ports: Iterable[int], taken: frozenset[int]) -> int:
    """The first port that nobody has; 0 when there is none."""
    return next((port for port in ports if port not in taken and port_is_free(port)), 0)


def output_path(folder: Path, order: StartOrder, task: TaskPlacement) -> Path | None:
    """Where a rank's output is to go; None: its own log."""
    pattern, spec = order.spec.output, order.spec
    if not pattern:
        return None
    values = {
        "%": "%",
        "j": str(job_of(order.attempt)),
        "t": str(task.rank),
        "n": str(task.rank),
        "x": spec.name,
        "A": str(spec.array_id or job_of(order.attempt)),
        "a": str(spec.array_index),
    }
    parts = pattern.replace("%%", "%\0").split("%")
    text = parts[0] + "".join(
        "%" + part[1:] if part.startswith("\0") else values.get(part[:1], "%" + part[:1]) + part[1:]
        for part in parts[1:]
    )
    return folder / "work" / text


def _rank(
    folder: Path, order: StartOrder, task: TaskPlacement, *, place: Place, site: Site
) -> dict[str, Any]:
    cgroups = site.cgroups.make(
        f"{attempt_name(order.attempt)}-{task.rank}",
        cpu_milli=task.cpu_milli,
        memory_bytes=task.memory_bytes,
    )
    # An address space limit is no help to work on devices, which map far more than they use.
    by_rlimit = site.cgroups.memory is None and not task.devices
    return {
        "rank": task.rank,
        "argv": _command(folder, order, task),
        "env": environment(order, task, place, base=site.base_env)
        | {"ATOLL_MEMBERS": str(folder / MEMBERS)},
        "folder": str(folder / "work"),
        "output": str(_log(folder, order, task)),
        "cgroups": cgroups,
        "memory_bytes": task.memory_bytes,
        "address_space_bytes": task.memory_bytes if by_rlimit else 0,
    }


def _command(folder: Path, order: StartOrder, task: TaskPlacement) -> list[str]:
    group = order.spec.groups[task.group]
    run = _script(folder / f"run-{task.group}.sh", group.run)
    if not group.setup:
        return [SHELL, str(run)]
    setup = _script(folder / f"setup-{task.group}.sh", group.setup)
    return [SHELL, "-c", BOTH, str(setup), str(run)]


def _script(path: Path, text: str) -> Path:
    # Written once: shells read it bit by bit while it runs.
    if not path.exists():
        path.write_text(text)
    return path


def _log(folder: Path, order: StartOrder, task: TaskPlacement) -> Path:
    log = folder / f"rank-{task.rank}.log"
    elsewhere = output_path(folder, order, task)
    if elsewhere is not None:
        elsewhere.parent.mkdir(parents=True, exist_ok=True)
        elsewhere.touch()
        log.unlink(missing_ok=True)
        log.symlink_to(elsewhere)
    return log


def _hand_over(process: "subprocess.Popen[bytes]", written: str) -> str:
    if process.stdin is None or process.stdout is None:
        return ""
    try:
        process.stdin.write(written.encode())
        process.stdin.close()
    except BrokenPipeError:
        return ""
    ready, _, _ = select.select([process.stdout], [], [], WORD_WITHIN_S)
    return process.stdout.readline().decode().strip() if ready else ""
