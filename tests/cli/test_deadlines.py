"""Deadlines on the command line: what a submit is told, and what `get` shows."""

import json
from pathlib import Path

from atoll.api.common.v1 import common_pb2
from tests.cli.conftest import Atoll
from tests.client.world import World

SPEC = """
name: train
run: python train.py
resources: {accelerators: H100}
deadline: 2036-07-18T13:20:00Z
elastic: {throughput: {1: 2, 4: 6.5}, work: 1000}
"""


def test_a_submit_tells_of_deadlines_beside_the_numbers(
    atoll: Atoll, world: World, tmp_path: Path
) -> None:
    (tmp_path / "train.yaml").write_text(SPEC)
    world.deadlines = [
        common_pb2.DeadlineAnswer(
            chance=common_pb2.DEADLINE_CHANCE_LIKELY, earliest_at=2_100_000_000, why="it is full"
        )
    ]
    done = atoll("submit", str(tmp_path / "train.yaml"))
    assert done.out == "1\n"
    assert "job 1: its deadline is likely to be met, but not guaranteed; it is full" in done.err
    assert "2036-07-18T13:20:00" in done.err


def test_a_submit_without_deadlines_tells_nothing(atoll: Atoll) -> None:
    assert atoll("submit", "--", "x").err == ""


def test_get_shows_the_deadline_and_the_sizes(atoll: Atoll, world: World, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(SPEC)
    world.deadlines = [
        common_pb2.DeadlineAnswer(chance=common_pb2.DEADLINE_CHANCE_GUARANTEED, cluster="north")
    ]
    told = json.loads(atoll("submit", str(tmp_path / "train.yaml"), "-o", "json").out)
    assert told[0]["told"]["chance"] == "guaranteed"
    world.jobs[1].guaranteed = True
    shown = atoll("get", "1").out
    assert "2036-07-18T13:20:00.000+00:00 (guaranteed)" in shown
    assert "1: 2, 4: 6.5 a second of 1000" in shown
    assert json.loads(atoll("get", "1", "-o", "json").out)["guaranteed"] is True
