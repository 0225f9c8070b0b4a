"""Where a stack keeps its data, and who holds it."""

import asyncio
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.core.model.errors import InvalidInput
from atoll.embedded.layout import Layout, WrongFolder
from atoll.embedded.lock import AlreadyRunning, FolderLock, holder


@pytest.fixture
def state(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATOLL_STATE_DIR", str(folder / "state"))
    (folder / "state").mkdir(mode=0o755)
    return folder / "state"


def test_data_are_below_the_state_folder(state: Path) -> None:
    made = Layout.of("work", None)
    assert made.data == state / "work" / "data"
    assert made.endpoints == state / "work" / "endpoints.json"


def test_root_keeps_them_where_nobody_can_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATOLL_STATE_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert Layout.of("nobody-s", None).data == Path("/var/lib/atoll/nobody-s")


def test_a_user_keeps_them_at_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATOLL_STATE_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert Layout.of("nobody-s", None).data == folder / ".local/state/atoll/nobody-s/data"


@pytest.mark.usefixtures("state")
def test_a_running_stack_is_found_in_its_own_folder(folder: Path) -> None:
    chosen = Layout.of("work", folder / "elsewhere")
    chosen.make()
    assert Layout.of("work", None).data == folder / "elsewhere"
    chosen.forget()
    assert Layout.of("work", None).data != folder / "elsewhere"


@pytest.mark.usefixtures("state")
def test_a_folder_with_other_things_is_refused_and_left_alone(folder: Path) -> None:
    other = folder / "mine"
    other.mkdir(mode=0o750)
    (other / "thesis.tex").touch()
    with pytest.raises(WrongFolder, match="holds other things"):
        Layout.of("work", other).make()
    assert stat.S_IMODE(other.stat().st_mode) == 0o750


@pytest.mark.usefixtures("state")
def test_passwords_are_for_nobody_else(folder: Path) -> None:
    made = Layout.of("work", folder / "data")
    made.make()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (made.configs, made.agents)} == {0o700}


@pytest.mark.parametrize("name", ["", "..", "a/b", "-a", "A", "a" * 64])
def test_a_name_that_is_no_folder_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        Layout.of(name, None)


async def test_a_folder_has_one_holder(tmp_path: Path) -> None:
    lock = await FolderLock.take(tmp_path / "lock")
    assert holder(tmp_path / "lock") is not None
    script = f"""
import asyncio
from pathlib import Path
from atoll.embedded.lock import FolderLock, AlreadyRunning
try:
    asyncio.run(FolderLock.take(Path({str(tmp_path / "lock")!r})))
except AlreadyRunning:
    print("refused")
"""
    other = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == "refused"
    lock.release()
    assert holder(tmp_path / "lock") is None
    (await FolderLock.take(tmp_path / "lock")).release()


def test_nobody_holds_what_is_not_there(tmp_path: Path) -> None:
    assert holder(tmp_path / "lock") is None


async def test_the_lock_waits_out_who_only_looks(tmp_path: Path) -> None:
    (await FolderLock.take(tmp_path / "lock")).release()
    looks = asyncio.to_thread(lambda: [holder(tmp_path / "lock") for _ in range(2000)])
    looking = asyncio.create_task(looks)
    try:
        (await FolderLock.take(tmp_path / "lock")).release()
    except AlreadyRunning:
        pytest.fail("a look is not a holder")
    await looking
