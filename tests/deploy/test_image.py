"""What the image is built from; `make test-compose` builds it."""

import re
import subprocess
import sys
import tomllib
import zipfile
from configparser import RawConfigParser
from pathlib import Path

from atoll.adapters.postgres import migrate
from tests.deploy.manifests import ROOT, UNIT

IMAGES = ROOT / "deploy" / "images"
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)


def pins(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in PINNED.findall(path.read_text()):
        found.setdefault(name, set()).add(version)
    return found


def wanted(extra: str) -> set[str]:
    """Names of what an extra needs, its own extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {_name(need) for need in project["dependencies"]}
    for need in project["optional-dependencies"][extra]:
        inner = re.match(r"atoll\[([\w,]+)\]", need)
        found |= set().union(*map(wanted, inner[1].split(","))) if inner else {_name(need)}
    return found


def test_the_image_has_the_locked_versions() -> None:
    locked = pins(ROOT / "constraints.txt")
    for name in ("requirements.txt", "build-requirements.txt"):
        for package, versions in pins(IMAGES / name).items():
            assert versions <= locked.get(package, versions), package
    assert wanted("container") <= set(pins(IMAGES / "requirements.txt"))


def test_the_wheel_has_the_migrations(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    package = "atoll/adapters/postgres"
    assert f"{package}/migrate.py" in names
    for script in (migrate.scripts() / "versions").glob("*.py"):
        assert f"{package}/migrations/versions/{script.name}" in names
    assert "atoll/runtime/roles/__main__.py" in names
    assert not [name for name in names if name.startswith(("migrations/", "libs/", "services/"))]


def test_the_unit_leaves_runs_alone_and_lets_them_be_limited() -> None:
    unit = RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert service["KillMode"] == "process"
    assert service["Delegate"] == "cpu memory pids"
    assert service["ProtectControlGroups"] == "no"
    assert service["ExecStart"].endswith("-m atoll.agent")
    assert service["NoNewPrivileges"] == "yes"


def _name(need: str) -> str:
    return re.split(r"[\[<>=]", need, maxsplit=1)[0].lower()
