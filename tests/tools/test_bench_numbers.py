from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tools.bench_numbers import Job, Measured, percentiles

JOBS = tuple(
    Job(submitted_at=n / 10, accepted_at=n / 10 + 0.05, ended_at=n / 10 + 1.6, succeeded=True)
    for n in range(1, 101)
)
GOOD = Measured(
    rate=10.0,
    seconds=10.0,
    job_seconds=1.5,
    took_s=10.0,
    ack_ms=[1.0, 2.0],
    errors=0,
    jobs=JOBS,
    cpu_s={"placement": 0.1, "dispatch": 0.2},
)


def test_percentiles_are_values_that_were_seen() -> None:
    assert percentiles(list(range(1, 101))) == {"p50": 51, "p95": 96, "p99": 100}
    assert percentiles([7.0]) == {"p50": 7.0, "p95": 7.0, "p99": 7.0}
    assert percentiles([]) == {}


def test_a_window_without_trouble_is_held() -> None:
    assert not GOOD.why_not_held()
    assert GOOD.jobs_per_s == pytest.approx(10.0)
    assert GOOD.accepted_ms == pytest.approx([50.0] * 100)
    assert GOOD.cpu_ms_per_job == {"placement": 1.0, "dispatch": 2.0}


@dataclass(frozen=True)
class Trouble:
    name: str
    why: str
    change: dict[str, Any] = field(default_factory=dict)


def late(job: Job, **by: float) -> Job:
    return replace(job, **{name: getattr(job, name) + seconds for name, seconds in by.items()})


TROUBLES = [
    Trouble("a call that failed", "1 calls failed", {"errors": 1}),
    Trouble("jobs that are not there", "90 of 100 jobs are there", {"jobs": JOBS[:90]}),
    Trouble(
        "a job that failed",
        "1 jobs did not succeed",
        {"jobs": (*JOBS[1:], replace(JOBS[0], succeeded=False))},
    ),
    Trouble("a submitter that could not keep up", "taking in took 12.0 s", {"took_s": 12.0}),
    Trouble(
        "a backlog that grew",
        "30 jobs were not accepted at the end",
        {"jobs": (*JOBS[:70], *(late(job, accepted_at=5.0) for job in JOBS[70:]))},
    ),
    Trouble(
        "jobs whose ends came late",
        "the last job ended 4.1 s late",
        {"jobs": (*JOBS[:99], late(JOBS[99], ended_at=4.0))},
    ),
]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_a_rate_is_not_held_with(trouble: Trouble) -> None:
    assert replace(GOOD, **trouble.change).why_not_held() == trouble.why


def test_what_comes_out_slower_than_it_goes_in_is_what_counts() -> None:
    slow = [late(job, ended_at=job.submitted_at) for job in JOBS]
    assert replace(GOOD, jobs=slow).jobs_per_s == pytest.approx(100 / 19.8)
