import os
import subprocess
import sys

import pytest

from atoll.runtime.roles import choice, kernels

Call = tuple[str, list[str], dict[str, str]]


class Became(Exception):
    """What execve would have made of this process."""


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    calls: list[Call] = []

    def execve(path: str, arguments: list[str], environment: dict[str, str]) -> None:
        calls.append((path, arguments, environment))
        raise Became

    monkeypatch.setattr(os, "execve", execve)
    return calls


@pytest.mark.parametrize("role", choice.SERVICES)
def test_a_service_takes_the_process_over(role: str, became: list[Call]) -> None:
    with pytest.raises(Became):
        choice.main([role, "--log-level", "debug"])
    assert became[0][1] == [sys.executable, "-m", f"atoll.{role}", "--log-level", "debug"]


def test_placement_alone_gets_the_kernels(
    became: list[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "environment", lambda: {"NUMBA_CACHE_DIR": "/copy"})
    for role in ("placement", "dispatch"):
        with pytest.raises(Became):
            choice.main([role])
    assert [call[2].get("NUMBA_CACHE_DIR") for call in became] == ["/copy", None]


def test_a_wrong_role_is_told_the_right_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert choice.main(["palcement"]) == 2
    said = capsys.readouterr().err
    assert "'palcement'" in said
    for role in (*choice.SERVICES, *choice.JOBS):
        assert role in said


def test_without_a_role_it_tells_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert choice.main([]) == 0
    assert "usage: ROLE" in capsys.readouterr().out


def test_the_entry_point_runs_a_service() -> None:
    command = [sys.executable, "-m", "atoll.runtime.roles", "agent", "config", "--cluster", "c7"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "c7  (flag --cluster)" in told.stdout


def test_the_entry_point_hands_the_exit_code_on() -> None:
    command = [sys.executable, "-m", "atoll.runtime.roles", "agent", "--backend", "local"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (told.returncode, "cluster: Field required" in told.stderr) == (2, True)
