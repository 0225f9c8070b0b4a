"""What the submission service measures of itself."""

from collections.abc import Iterable
from typing import Final

from atoll.adapters.system import SystemClock
from atoll.core.model.ids import JobId
from atoll.core.model.trace import job_trace
from atoll.runtime import metrics, tracing

CLOCK: Final = SystemClock()
NS: Final = 1e9

SUBMITTED: Final = metrics.counter("jobs_submitted_total", "Jobs written.")
REPLAYED: Final = metrics.counter(
    "submits_replayed_total", "SubmitJobs calls that found the jobs of an earlier one."
)
REFUSED: Final = metrics.counter(
    "submits_refused_total", "SubmitJobs calls that were refused.", ("reason",)
)
COMMIT_SECONDS: Final = metrics.histogram(
    "submit_commit_seconds", "Transactions that write jobs, retries included."
)
COMMIT_JOBS: Final = metrics.histogram(
    "submit_commit_jobs",
    "Jobs of one transaction, over all calls that it commits.",
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000),
)
PRUNED: Final = metrics.counter(
    "rows_pruned_total", "Rows deleted because nobody needs them any more.", ("table",)
)


def committed(jobs: int, seconds: float) -> None:
    """One transaction of SubmitJobs calls ended well."""
    COMMIT_SECONDS.observe(seconds)
    COMMIT_JOBS.observe(jobs)


def begin_traces(submit: str, jobs: Iterable[JobId], *, since: float) -> None:
    """Begin the trace of each job that a call has written, linked to the span of the call."""
    if not tracing.sampled(submit):
        return
    start_ns, end_ns = int(since * NS), int(CLOCK.now() * NS)
    for job in jobs:
        tracing.begin(
            "submission.job",
            own=job_trace(submit, job),
            link=submit,
            start_ns=start_ns,
            end_ns=end_ns,
            attributes={"atoll.job": job},
        )
