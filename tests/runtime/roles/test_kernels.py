import tempfile
from pathlib import Path

import pytest

from atoll.runtime.roles import kernels
from atoll.runtime.roles.kernels import ANY, TARGETS, environment, suits, target

MODERN = TARGETS["x86_64"]


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image's cache, as unwritable as it is for a stranger."""
    folder = tmp_path / "image" / "engine_1"
    folder.mkdir(parents=True)
    (folder / "run.nbc").write_bytes(b"code")
    for path in (folder / "run.nbc", folder, folder.parent):
        path.chmod(0o444 if path.is_file() else 0o555)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return folder.parent


def cpuinfo(tmp_path: Path, flags: str) -> Path:
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\nflags\t\t: fpu {flags} sse2\n")
    return path


def test_the_image_s_code_is_copied_to_where_it_can_be_written(image: Path) -> None:
    found = Path(environment(image)["NUMBA_CACHE_DIR"])
    assert (found / "engine_1" / "run.nbc").read_bytes() == b"code"
    assert found.stat().st_mode & 0o777 == 0o700
    (found / "engine_1" / "new.nbc").write_bytes(b"more")


def test_the_next_start_begins_with_a_fresh_copy(image: Path) -> None:
    first = Path(environment(image)["NUMBA_CACHE_DIR"])
    (first / "engine_1" / "strange.nbc").write_bytes(b"strange")
    second = Path(environment(image)["NUMBA_CACHE_DIR"])
    assert [path.name for path in second.rglob("*.nbc")] == ["run.nbc"]


def test_outside_an_image_nothing_is_changed(tmp_path: Path) -> None:
    assert environment(tmp_path / "absent") == {}


def test_a_cache_that_was_chosen_stays(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/chosen")
    assert environment(image) == {}


def test_a_processor_with_every_flag_runs_the_image_s_code(tmp_path: Path) -> None:
    assert suits(MODERN, cpuinfo(tmp_path, " ".join(sorted(MODERN.flags))))
    assert not suits(MODERN, cpuinfo(tmp_path, " ".join(sorted(MODERN.flags - {"avx2"}))))
    assert suits(ANY, tmp_path / "absent")


def test_an_older_processor_compiles_for_itself(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    old = environment(image, cpuinfo=cpuinfo(tmp_path, "avx"))
    assert set(old) == {"NUMBA_CACHE_DIR"}
    new = environment(image, cpuinfo=cpuinfo(tmp_path, " ".join(MODERN.flags)))
    assert new["NUMBA_CPU_NAME"] == "x86-64-v3"
    assert new["NUMBA_CPU_FEATURES"] == ""


def test_unknown_machines_get_code_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert target() is kernels.ANY
