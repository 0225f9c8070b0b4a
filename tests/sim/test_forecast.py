"""`atoll sim forecast`: small traces, made here in the format of the public ones."""

import csv
import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from atoll.adapters.system import SystemClock
from atoll.burst.forecasting.forecaster import Forecaster
from atoll.core.engine.burst.demand.series import STEP_S
from atoll.core.model.errors import InvalidInput
from atoll.sim.commands.forecast import forecast
from atoll.sim.forecast import Replayed, known_at, replay, trace_of
from atoll.sim.readers.elasticflow_raw import RawJob, read_raw

DAY_S = 86400


def jobs_of(seed: int, days: int) -> list[RawJob]:
    """More by day than by night."""
    rng = np.random.default_rng(seed)
    submits = [
        day * DAY_S + float(at)
        for day in range(days)
        for at in np.floor(np.clip(rng.normal(13, 4, 40), 0, 23.9) * 3600)
    ]
    return [
        RawJob(at, float(rng.integers(600, 20000)), int(2 ** rng.integers(0, 4))) for at in submits
    ]


def archive(folder: Path, clusters: Sequence[Sequence[RawJob]]) -> Path:
    (folder / "elasticflow").mkdir(parents=True)
    with tarfile.open(folder / "elasticflow" / "raw-traces.tar.gz", "w:gz") as tar:
        for number, jobs in enumerate(clusters, 1):
            lines = [
                f"{i},{job.submitted_s:g},{job.run_s:g},{job.gpus}" for i, job in enumerate(jobs)
            ]
            text = "\n".join(["job_id,submission_time,duration,num_gpu", *lines]).encode()
            member = tarfile.TarInfo(f"cluster{number:02}.csv")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return folder


def replayed(clusters: Sequence[Sequence[RawJob]], *, origins: int) -> Replayed:
    traces = [trace_of(f"c{number}", jobs) for number, jobs in enumerate(clusters)]
    return replay(traces, Forecaster(3, horizon=6), origins=origins, clock=SystemClock())


def test_the_command_tells_all_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = archive(tmp_path / "t", [jobs_of(seed, 10) for seed in (1, 2)])
    out, plot = tmp_path / "f.csv", tmp_path / "f.png"
    assert forecast(traces=traces, horizon_h=6, origins=3, out=out, plot=plot) == 0
    numbers = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {"mase", "coverage_90", "wape_1h", "fit_s", "mase_last", "mase_day_ago"} < set(numbers)
    assert 0 < numbers["mase"] < 2
    assert 0 <= numbers["coverage_90"] <= 1
    assert numbers["fits"] > 0
    assert [each["origins"] for each in numbers["per_cluster"].values()] == [3, 3]
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == 2 * 3 * 6
    assert all(float(row["q05"]) <= float(row["q50"]) <= float(row["q95"]) for row in rows)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_what_happens_after_an_origin_changes_no_forecast_made_by_then() -> None:
    one = [jobs_of(seed, 13) for seed in (1, 2)]
    split = 11 * DAY_S - STEP_S  # an origin after the first fit
    # The same until then: whoever runs then ends at another time, and others come later.
    other = [
        [
            RawJob(job.submitted_s, job.run_s if ends <= split else job.run_s * 3 + 5e4, job.gpus)
            if job.submitted_s <= split
            else RawJob(job.submitted_s + 77.0, job.run_s / 2, 8)
            for job in jobs
            for ends in [job.submitted_s + job.run_s]
        ]
        for jobs in one
    ]
    found, changed = replayed(one, origins=12), replayed(other, origins=20)
    by_origin = {
        (each.forecast.key, each.forecast.at_s): each.forecast.quantiles for each in changed.judged
    }
    same = [each.forecast for each in found.judged if each.forecast.at_s <= split]
    assert len(same) > 6
    assert found.fit_s
    assert all((by_origin[each.key, each.at_s] == each.quantiles).all() for each in same)
    later = [each.forecast for each in found.judged if each.forecast.at_s > split]
    assert all((by_origin[each.key, each.at_s] != each.quantiles).any() for each in later)


def test_use_at_an_hour_is_what_was_submitted_and_has_not_ended() -> None:
    trace = trace_of(
        "c", [RawJob(3600.0, 3600.0, 4), RawJob(3700.0, 90000.0, 2), RawJob(90100.0, 86400.0, 1)]
    )
    assert trace.first == 1
    assert trace.end == 48
    assert trace.used[:4].tolist() == [4.0, 2.0, 2.0, 2.0]
    known = known_at(trace, 2)
    assert known.history.tolist() == [4.0, 2.0]
    assert known.jobs.over.tolist() == [True, False]
    assert known.jobs.ran_s.tolist() == [3600.0, 3500.0]


@pytest.mark.parametrize(
    ("text", "says"),
    [("a,b\n1,2\n", "line 2"), ("job_id,submission_time,duration,num_gpu\n", "no jobs")],
)
def test_a_trace_that_cannot_be_read_is_named(tmp_path: Path, text: str, says: str) -> None:
    with tarfile.open(tmp_path / "raw-traces.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("cluster07.csv")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text.encode()))
    with pytest.raises(InvalidInput, match=f"cluster07.*{says}|{says}"):
        read_raw(tmp_path)


@pytest.mark.parametrize("asked", [{"horizon_h": 0}, {"horizon_h": 500}, {"origins": 0}])
def test_what_cannot_be_forecast_is_refused(tmp_path: Path, asked: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        forecast(traces=tmp_path, **asked)  # type: ignore[arg-type]
