"""`atoll sim run`."""

import json
from pathlib import Path

import pytest
import yaml

from atoll.core.model.errors import InvalidInput
from atoll.sim.commands.run import run
from tests.sim.small import cluster

JOBS = {"jobs": 15, "over": "10m", "run": {"median": "3m", "most": "10m"}, "cpus": 2}


def written(folder: Path, *faults: dict[str, object]) -> str:
    path = folder / "given.yaml"
    path.write_text(
        yaml.safe_dump({
            "clusters": [cluster("north")],
            "synthetic": [JOBS],
            "faults": list(faults),
        })
    )
    return str(path)


def test_the_last_line_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = written(tmp_path, {"what": "leader-change", "at": ["5m"]})
    assert run(given, out=tmp_path / "out", plots=tmp_path / "plots") == 0
    numbers = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert numbers["jobs"] == 15
    assert numbers["faults"] == {"leader-change": 1}
    assert numbers["violation"] is None
    assert "eta_starts" in numbers
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == numbers
    assert len(list((tmp_path / "plots").glob("*.png"))) == 3


def test_without_messages_it_reports_the_same_kind_of_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(written(tmp_path), fast=True, etas=True) == 0
    numbers = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert numbers["states"] == {"SUCCEEDED": 15}
    assert "eta_starts" in numbers
    assert 0 < numbers["goodput"]["goodput"] <= numbers["goodput"]["scheduling"] <= 1


def test_faults_need_messages(tmp_path: Path) -> None:
    given = written(tmp_path, {"what": "leader-change", "at": ["5m"]})
    with pytest.raises(InvalidInput, match="fast"):
        run(given, fast=True)
