"""`atoll sim spot`, on windows made in the test."""

import csv
import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atoll.core.engine.burst.rules import RULES
from atoll.core.engine.burst.spot import Terms
from atoll.core.model.errors import InvalidInput
from atoll.sim.commands.spot import spot
from atoll.sim.readers.spot import SpotWindow, by_window, read_windows
from atoll.sim.spot import bound_ratio, cost_ratio, play

TICKS = 60
Rows = dict[tuple[str, str], str]
"""(zone, window): a letter per tick."""
Capture = pytest.CaptureFixture[str]


def availability(seed: int, zones: int = 2, windows: int = 2) -> Rows:
    """Strings of 0 (up) and 1, in runs."""
    rng = np.random.default_rng(seed)
    made: Rows = {}
    for zone in range(zones):
        for window in range(windows):
            flips = np.cumsum(rng.random(TICKS) < 0.2) + rng.integers(2)
            made[f"z{zone}", str(window)] = "".join("01"[flip % 2] for flip in flips)
    return made


def written(path: Path, rows: Rows) -> Path:
    lines = [
        json.dumps({"zone": zone, "window": int(window), "gap_s": 600, "unavailable": text})
        for (zone, window), text in rows.items()
    ]
    text = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def ran(path: Path, capsys: Capture, **options: Any) -> dict[str, Any]:
    """The last line; 4 hours of work within 6."""
    assert spot(windows=path, deadline_h=6.0, work_h=4.0, **options) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def modes(path: Path) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            at = found[row["zone"], row["window"]]
            assert int(row["tick"]) == len(at)
            at.append(row["mode"])
    return found


def paid(held: list[str], up: str) -> float:
    """Dollars of a job, counted anew from what it held; fails if it was too late."""
    before, wait, left, cost = "none", 0, 4 * 3600, 0.0
    for tick, mode in enumerate(held):
        assert left > 0
        if mode != "none":
            assert mode == "od" or up[tick] == "0"
            cost += (3.06 if mode == "od" else 0.9731) / 6
            wait = 720 if mode != before else wait
            started = min(wait, 600)
            wait -= started
            left -= 600 - started
        before = mode
    assert left <= 0
    assert (len(held) - 1) * 600 < 6 * 3600
    return cost


@pytest.mark.parametrize("name", sorted(RULES))
def test_the_cost_is_that_of_what_was_held(name: str, tmp_path: Path, capsys: Capture) -> None:
    rows = availability(1)
    out = tmp_path / "held.csv"
    report = ran(written(tmp_path / "w.jsonl.gz", rows), capsys, policy=name, out=out)
    costs = {key: paid(held, rows[key]) for key, held in modes(out).items()}
    assert set(costs) == set(rows)
    assert report["cost_ratio"] == pytest.approx(sum(costs.values()) / 4 / 3.06 / 4, abs=1e-4)
    assert (report["policy"], report["missed"], report["windows"]) == (name, 0, 4)
    first = (costs["z0", "0"] + costs["z0", "1"]) / 2 / 3.06 / 4
    assert report["per_zone"]["z0"]["cost_ratio"] == pytest.approx(first, abs=1e-4)


@pytest.mark.parametrize("name", sorted(RULES))
def test_nothing_is_known_of_what_is_to_come(name: str, tmp_path: Path, capsys: Capture) -> None:
    rows, at = availability(2), 14
    changed = {
        key: text[:at] + text[at:].translate(str.maketrans("01", "10"))
        for key, text in rows.items()
    }
    held = []
    for number, each in enumerate((rows, changed)):
        out = tmp_path / f"{number}.csv"
        path = written(tmp_path / f"{number}.jsonl", each)
        ran(path, capsys, policy=name, out=out, aligned=path, aligned_out=tmp_path / f"a{number}")
        with (tmp_path / f"a{number}").open(newline="") as file:
            moved = [row for row in csv.reader(file) if row[2] != "tick" and int(row[2]) < at]
        held.append(({key: value[:at] for key, value in modes(out).items()}, moved))
    assert held[0] == held[1]


def test_without_a_policy_all_are_compared(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "w.jsonl", availability(3))
    report = ran(path, capsys, aligned=path)
    assert set(report["policies"]) == set(report["aligned"]["policies"]) == set(RULES)
    assert report["policy"] == "atoll"
    assert report["cost_ratio"] == report["policies"]["atoll"]["cost_ratio"]
    assert all(each["cost_ratio"] >= report["bound"] for each in report["policies"].values())
    aligned = report["aligned"]
    assert (aligned["zones"], aligned["windows"], aligned["missed"]) == (2, 2, 0)
    alone = report["policies"]["uniform_progress"]["cost_ratio"]
    assert aligned["single_zone_uniform_progress"] == alone
    assert aligned["saved"] == pytest.approx(1 - aligned["cost_ratio"] / alone, abs=1e-3)


def test_a_job_moves_to_the_zone_that_is_up(tmp_path: Path, capsys: Capture) -> None:
    rows = {("a", "7"): "0" * 10 + "1" * 50, ("b", "7"): "1" * 9 + "0" * 51}
    path, out = written(tmp_path / "w.jsonl", rows), tmp_path / "out.csv"
    ran(path, capsys, policy="greedy", aligned=path, aligned_out=out)
    with out.open(newline="") as file:
        zones = [row["zone"] for row in csv.DictReader(file)]
    # 24 ticks of work, and 1.2 for each of two starts.
    assert zones == ["a"] * 10 + ["b"] * 17


def test_the_bound_is_what_one_would_do_who_knows() -> None:
    terms = Terms(4 * 600.0, 9 * 600.0, 720.0, 600.0, 3.0, 1.0)

    def least(text: str) -> float:
        window = SpotWindow("z", 0, 600.0, tuple(letter == "0" for letter in text))
        played = [play(rule, [window], terms) for rule in RULES.values()]
        bound = bound_ratio([(window,)], terms)
        assert all(bound <= cost_ratio([each], terms) + 1e-9 for each in played)
        return bound * 4 * 3.0

    assert least("0" * 9) == pytest.approx(6.0)  # 5.2 ticks of spot, begun ones are paid
    assert least("1" * 9) == pytest.approx(18.0)
    # 1.8 of work on the first three; the rest on demand needs 2.2 and 1.2 of a start.
    assert least("000" + "1" * 6) == pytest.approx(3 * 1.0 + 4 * 3.0)


@pytest.mark.parametrize(
    "line",
    ["{", '{"zone": "a", "window": 1, "gap_s": 600, "unavailable": "012"}', '{"zone": "a"}'],
)
def test_the_reader_names_the_line_that_is_wrong(line: str, tmp_path: Path) -> None:
    path = written(tmp_path / "w.jsonl", availability(1, zones=1, windows=1))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InvalidInput, match="line 2"):
        read_windows(path)


def test_windows_of_one_number_have_the_same_ticks() -> None:
    one, other = SpotWindow("a", 1, 600.0, (True,)), SpotWindow("b", 1, 300.0, (True,))
    later = SpotWindow("a", 2, 300.0, (True, False))
    assert by_window([later, one]) == [(one,), (later,)]
    with pytest.raises(InvalidInput, match="differ"):
        by_window([one, other])
    with pytest.raises(InvalidInput, match="twice"):
        by_window([one, one])


@pytest.mark.parametrize(
    "wrong",
    [{"policy": "none"}, {"prior": "north"}, {"deadline_h": 0.0}, {"overhead_h": -1.0}],
    ids=str,
)
def test_wrong_options_are_named(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path / "w.jsonl", availability(1))
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        spot(windows=path, **{"deadline_h": 6.0} | wrong)


def test_a_job_that_cannot_be_in_time_is_counted(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "w.jsonl", availability(1))
    assert spot(windows=path, deadline_h=3.0, work_h=4.0) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["missed"], report["bound"]) == (4, None)
