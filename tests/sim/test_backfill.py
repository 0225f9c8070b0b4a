"""`atoll sim backfill`: small logs, made here in the formats of public ones."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.model.errors import InvalidInput
from atoll.core.policies.time_order import TIME_ORDERS, TimeOrder
from atoll.sim.backfill import Outcome, coverage, simulate_log, slowdowns
from atoll.sim.commands.backfill import backfill
from atoll.sim.readers.parallel import ParallelLog
from atoll.sim.readers.pwa import read_pwa
from atoll.sim.readers.swf import read_swf

POOL = 16
PUBLISHED = {"KTH-SP2.workload.csv.gz": 100}


def busy_log(seed: int, jobs: int = 400, *, every_s: float = 120.0) -> ParallelLog:
    """More than the machine can do, when a job comes every two minutes."""
    rng = np.random.default_rng(seed)
    request = rng.choice([60.0, 600.0, 3600.0], jobs)
    return ParallelLog(
        job=np.arange(1, jobs + 1),
        submit=np.floor(np.cumsum(rng.exponential(every_s, jobs))),
        run=np.floor(request * rng.uniform(0.0, 1.0, jobs)),
        processors=rng.choice([1, 2, 4, 8, POOL], jobs, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
        request=request,
        user=rng.integers(0, 6, jobs),
        published_wait=np.full(jobs, np.nan),
    )


def run(log: ParallelLog, policy: TimeOrder, processors: int = POOL) -> Outcome:
    return simulate_log(log, processors, policy, tick=lambda came: None)


@pytest.mark.parametrize("name", TIME_ORDERS)
def test_all_jobs_run_and_the_machine_is_never_overfull(name: str) -> None:
    log = busy_log(1)
    outcome = run(log, TIME_ORDERS[name])
    assert (outcome.wait >= 0).all()
    for now in np.unique(outcome.start):
        runs = (outcome.start <= now) & (outcome.start + log.run > now)
        assert log.processors[runs].sum() <= POOL


@pytest.mark.parametrize("name", TIME_ORDERS)
def test_two_runs_are_identical(name: str) -> None:
    one, other = (run(busy_log(2), TIME_ORDERS[name]) for _ in range(2))
    assert one.start.tobytes() == other.start.tobytes()
    assert one.quantiles.tobytes() == other.quantiles.tobytes()


@settings(max_examples=20, deadline=None)
@given(name=st.sampled_from(sorted(TIME_ORDERS)), seed=st.integers(0, 5), part=st.floats(0.1, 0.9))
def test_what_has_not_ended_yet_changes_no_decision(name: str, seed: int, part: float) -> None:
    """Run times of jobs that have not ended by T become others: all before T stays as it was."""
    log, policy = busy_log(seed, 200), TIME_ORDERS[name]
    before = run(log, policy)
    now = before.start.min() + part * np.ptp(before.start)
    open_ = before.start + log.run > now
    # Another run time that has not ended by then either, as far as the request allows.
    ran = np.maximum(now - before.start, 0.0)
    other = np.minimum(log.request, np.maximum(ran + 1.0, log.request - log.run))
    after = run(replace(log, run=np.where(open_, other, log.run)), policy)
    decided = before.start < now
    assert np.array_equal(before.start[decided], after.start[decided])
    assert (after.start[~decided] >= now).all()
    told = log.submit < now
    assert np.array_equal(before.quantiles[told], after.quantiles[told])


def test_in_order_of_submit_nobody_overtakes() -> None:
    outcome = run(busy_log(3), TIME_ORDERS["fcfs"])
    assert (np.diff(outcome.start) >= 0).all()


def test_backfilling_starts_the_first_as_soon_as_without() -> None:
    """A wide job waits for both; a short one slips in front of it, a long one does not."""
    log = replace(
        busy_log(0, 4),
        submit=np.array([0.0, 1.0, 2.0, 3.0]),
        run=np.array([100.0, 50.0, 200.0, 50.0]),
        request=np.array([100.0, 50.0, 200.0, 50.0]),
        processors=np.array([8, POOL, 8, 8]),
    )
    waits = {name: run(log, order).start.tolist() for name, order in TIME_ORDERS.items()}
    assert waits["fcfs"] == [0.0, 100.0, 150.0, 150.0]
    assert waits["easy"] == waits["conservative"] == [0.0, 100.0, 150.0, 3.0]


def test_the_own_policy_keeps_waits_short_and_bounded() -> None:
    log = busy_log(4, 3000)
    easy, own = (run(log, TIME_ORDERS[name]) for name in ("easy", "atoll"))
    assert slowdowns(own.wait, log.run).mean() < slowdowns(easy.wait, log.run).mean()
    assert own.wait.max() < 1.5 * easy.wait.max()


def test_forecasts_hold_as_often_as_they_say() -> None:
    half, most = coverage(run(busy_log(5, 8000, every_s=160.0), TIME_ORDERS["atoll"]))
    assert 0.45 < half < 0.55
    assert 0.87 < most < 0.93


def table(path: Path, log: ParallelLog, wait: str = "") -> Path:
    head = "job_id,submit_s,run_s,procs,req_time_s,user" + (",easy_wait_s" if wait else "")
    columns = (log.job, log.submit, log.run, log.processors, log.request, log.user)
    rows = [",".join(str(int(value)) for value in row) for row in zip(*columns, strict=True)]
    path.write_text("\n".join([head, *(row + (f",{wait}" if wait else "") for row in rows)]) + "\n")
    return path


def swf(path: Path, log: ParallelLog) -> Path:
    lines = ["; Version: 2.2", ";"]
    for i in range(len(log.job)):
        user, used = log.user[i], log.processors[i]
        times = f"{log.submit[i]:.0f} -1 {log.run[i]:.0f}"
        lines.append(
            f"{log.job[i]} {times} {used} -1 -1 -1 {log.request[i]:.0f} -1 1 {user} 1 1 1 1 -1 -1"
        )
    lines.append("9999 5 -1 -1 4 -1 -1 4 60 -1 5 1 1 1 1 1 -1 -1")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_both_formats_say_the_same(tmp_path: Path) -> None:
    log = busy_log(6, 50)
    one = read_pwa(table(tmp_path / "log.csv", log, wait="7"))
    other = read_swf(swf(tmp_path / "log.swf", log))
    for name in ("job", "submit", "run", "processors", "request", "user"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (one.published_wait == 7).all()
    assert np.isnan(other.published_wait).all()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty.csv", ""),
        ("no_job.csv", "job_id,submit_s,run_s,procs,req_time_s,user\n"),
        ("no_column.csv", "job_id,submit_s\n1,2\n"),
        ("no_number.csv", "job_id,submit_s,run_s,procs,req_time_s,user\n1,2,x,1,5,1\n"),
        ("short.csv", "job_id,submit_s,run_s,procs,req_time_s,user\n1,2\n"),
        ("short.swf", "1 2 3\n"),
        ("comments.swf", "; nothing\n"),
    ],
)
def test_what_is_wrong_with_a_log_is_said(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidInput):
        (read_swf if name.endswith("swf") else read_pwa)(path)


def test_the_command_prints_its_numbers_and_writes_the_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = busy_log(7), tmp_path / "starts.csv"
    path = table(tmp_path / "log.csv", log, wait="60")
    assert backfill(workload=path, procs=POOL, policy="easy", skip=10, out=out) == 0
    numbers = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert numbers["jobs"] == 360
    outcome = run(log.without_first(10), TIME_ORDERS["easy"])
    assert numbers["avebsld"] == pytest.approx(
        slowdowns(outcome.wait, log.run[40:]).mean(), abs=1e-3
    )
    assert {"eta_coverage_p50", "eta_coverage_p90", "eta_abs_error_s"} <= numbers.keys()
    rows = out.read_text().splitlines()
    assert rows[0] == "job_id,start_s"
    assert rows[1] == f"41,{outcome.start[0]}"
    assert len(rows) == 361


def test_a_job_that_is_too_wide_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="job"):
        backfill(workload=table(tmp_path / "log.csv", busy_log(8)), procs=POOL - 1)


def test_easy_is_what_was_published() -> None:
    """On the archive's logs, where they are at hand; else on one whose waits are known."""
    folder = os.environ.get("ATOLL_TRACES")
    for name, processors in PUBLISHED.items() if folder else ():
        log = read_pwa(Path(str(folder)) / "pwa" / name)
        outcome = run(log, TIME_ORDERS["easy"], processors)
        ours = slowdowns(outcome.wait, log.run).mean()
        assert ours == pytest.approx(slowdowns(log.published_wait, log.run).mean(), rel=0.03)
    jam = replace(busy_log(0, 3), submit=np.zeros(3), run=np.full(3, 60.0))
    jam = replace(jam, request=np.full(3, 60.0), processors=np.full(3, POOL))
    assert run(jam, TIME_ORDERS["easy"]).wait.tolist() == [0.0, 60.0, 120.0]
