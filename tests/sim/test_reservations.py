"""Bookings on a log: owners start on time, nobody is in their way, and lending wins back."""

import json
from pathlib import Path

import numpy as np
import pytest

from atoll.core.model.errors import InvalidInput
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.sim.commands.reservations import reservations
from atoll.sim.readers.pwa import read_pwa
from atoll.sim.reservations import Outcome, Trial, booked, lost_pct, trial, without
from atoll.sim.reserving import OWNERS

HOUR, DAY = 3600, 86_400
PROCESSORS = 16
KEYS = {
    "on_time_ratio", "latest_start_s", "utilisation_lost_pct",
    "utilisation_lost_without_lending_pct", "avebsld",
}  # fmt: skip


def still(_ended: int) -> None:
    """Nobody looks at the progress."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day on 16 processors, more than they can do."""
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("log") / "log.csv"
    rows = ["job_id,submit_s,run_s,procs,req_time_s,user"]
    for number, at in enumerate(np.sort(rng.uniform(0, DAY, 60)).astype(int), 1):
        run = int(rng.integers(HOUR // 4, 5 * HOUR))
        rows.append(f"{number},{at},{run},{rng.choice([1, 2, 4, 8])},{2 * run},{number % 5}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def given(log: Path) -> Trial:
    return trial(read_pwa(log), PROCESSORS, share=0.2, seed=1)


@pytest.fixture(scope="module")
def base(given: Trial) -> Outcome:
    return without(given, tick=still)


@pytest.fixture(scope="module")
def lent(given: Trial) -> Outcome:
    return booked(given, lend=True, tick=still)


@pytest.fixture(scope="module")
def kept(given: Trial) -> Outcome:
    return booked(given, lend=False, tick=still)


def test_so_much_is_booked_and_half_of_it_used(given: Trial, log: Path) -> None:
    held = sum(each.held_s for each in given.draws)
    assert 0.2 <= held / (given.span_s * PROCESSORS) < 0.3
    many = trial(read_pwa(log), PROCESSORS, share=0.6, seed=1)
    assert {each.used for each in many.draws} == {0.0, 0.5, 1.0}


@pytest.mark.parametrize("which", ["lent", "kept"])
def test_owners_start_on_time(which: str, given: Trial, request: pytest.FixtureRequest) -> None:
    outcome: Outcome = request.getfixturevalue(which)
    assert len(outcome.late_s) == sum(each.used > 0 for each in given.draws)
    assert set(outcome.late_s) == {0.0}


@pytest.mark.parametrize("which", ["lent", "kept"])
def test_windows_have_their_processors_from_start_to_end(
    which: str, given: Trial, request: pytest.FixtureRequest
) -> None:
    outcome: Outcome = request.getfixturevalue(which)
    others = [
        (each.begun, each.ended or np.inf, each.units // BLOCKS_PER_DEVICE)
        for each in outcome.record.stretches
        if (spec := outcome.record.jobs[each.job].work.spec).queue != OWNERS
        and not (which == "lent" and spec.preemptible)
    ]
    times = {each.start for each in given.draws} | {begun for begun, _, _ in others}
    for now in sorted(times):
        kept_free = sum(d.processors for d in given.draws if d.start <= now < d.start + d.length_s)
        held = sum(units for begun, ended, units in others if begun <= now < ended)
        assert held + kept_free <= PROCESSORS


def test_what_is_lent_wins_back_and_is_taken_back(
    base: Outcome, lent: Outcome, kept: Outcome
) -> None:
    assert 0 < lost_pct(lent, base) < lost_pct(kept, base)
    assert lent.stopped > kept.stopped == base.stopped == 0
    again = [job for job in lent.record.jobs.values() if len(job.stretches) > 1]
    assert again
    for job in again:
        assert job.state == "SUCCEEDED"
        assert sum(each.useful_s for each in job.stretches) == pytest.approx(job.work.run_s)


def test_every_run_has_the_same_jobs_and_ends_them_all(
    base: Outcome, lent: Outcome, kept: Outcome
) -> None:
    jobs = [
        {(j.work.spec.name, j.work.at, j.work.run_s) for j in outcome.record.jobs.values()}
        for outcome in (base, lent, kept)
    ]
    assert jobs[0] == jobs[1] == jobs[2]
    for outcome in (base, lent, kept):
        assert {job.state for job in outcome.record.jobs.values()} == {"SUCCEEDED"}


def test_the_command_says_the_same_twice(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for _ in range(2):
        assert reservations(workload=log, procs=PROCESSORS, days=0.4, seed=4) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    numbers = json.loads(said[0].splitlines()[-1])
    assert set(numbers) >= KEYS
    assert numbers["on_time_ratio"] == 1.0
    assert numbers["latest_start_s"] <= 1.0


@pytest.mark.parametrize(("name", "value"), [("share", 0.0), ("share", 100.0), ("procs", 4)])
def test_what_cannot_be_is_refused(name: str, value: float, log: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        reservations(**{"workload": log, "procs": PROCESSORS, name: value})  # type: ignore[arg-type]
    assert [each.field for each in refused.value.violations] == [name]
