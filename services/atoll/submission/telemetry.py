"""What the submission service measures of itself."""

from typing import Final

from atoll.runtime import metrics

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
