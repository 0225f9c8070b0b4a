"""Folders of runs that are over: as many as are wanted stay, whoever puts them away."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from atoll.agent.localrun.folders import Folders
from atoll.core.model.ids import AttemptId
from tests.services.agent.jobs import attempt


def test_runs_that_end_together_are_put_away_side_by_side(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.make()
    attempts = [attempt(number) for number in range(400)]
    for one in attempts:
        folders.of(one).mkdir()

    def put_away(one: AttemptId) -> None:
        folders.put_away([one], keep=5)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(put_away, attempts))
    assert list(folders.attempts()) == []
    assert sum(folders.kept(one) is not None for one in attempts) == 5
