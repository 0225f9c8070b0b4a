"""Folders of runs that are over: as many as are wanted stay, however they are put away."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from atoll.agent.localrun.folders import TOMBSTONE, Folders, claim, read_marker
from tests.services.agent.jobs import attempt


def test_runs_are_put_away_while_others_are_pruned(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.make()
    attempts = [attempt(number) for number in range(1, 401)]
    with ThreadPoolExecutor(1) as thread:
        pruned = []
        for one in attempts:
            folders.of(one).mkdir()
            folders.put_away(one)
            pruned.append(thread.submit(folders.prune, 5))
        for done in pruned:
            done.result()
    assert list(folders.attempts()) == []
    assert sum(folders.kept(one) is not None for one in attempts) == 5


def test_what_ended_is_not_replaced_by_a_later_tombstone(tmp_path: Path) -> None:
    folders, one = Folders(tmp_path), attempt(1)
    folders.make()
    folders.of(one).mkdir()
    (folders.of(one) / "rank-0.log").write_text("hello")
    folders.put_away(one)
    for _ in range(2):
        assert claim(folders.of(one))
        folders.put_away(one)
    kept = folders.kept(one)
    assert kept is not None
    assert (kept / "rank-0.log").read_text() == "hello"
    folders.prune(1)
    assert list((tmp_path / "trash").iterdir()) == []


def test_a_claim_is_whole_and_only_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(claim, [tmp_path / "1.1"] * 50))
    assert read_marker(tmp_path / "1.1") == TOMBSTONE
    assert [path.name for path in (tmp_path / "1.1").iterdir()] == ["started"]
