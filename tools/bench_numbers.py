"""What was measured, and what follows from it. Nothing here waits or looks at a clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SHARES: Final = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
MOST_SLIP: Final = 1.05
"""A rate is held when its jobs took at most so many times their window to be taken in."""
MOST_BACKLOG_S: Final = 1.0
"""And when, at the window's end, at most so many seconds' jobs were not accepted yet."""
MOST_TAIL_S: Final = 3.0
"""And when the last job ended at most so long after it would have without any waiting."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job's row; unix seconds of the database, 0: has not happened."""

    submitted_at: float
    accepted_at: float
    ended_at: float
    succeeded: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """One window at one rate."""

    rate: float
    """Jobs per second that were wanted."""
    seconds: float
    """Length of the window."""
    job_seconds: float
    took_s: float
    """From the first call to the last answer."""
    ack_ms: Sequence[float]
    """By call."""
    errors: int
    jobs: Sequence[Job]
    cpu_s: Mapping[str, float]
    """By process, until the last job ended."""

    @property
    def wanted(self) -> int:
        """Jobs that were to be submitted."""
        return round(self.rate * self.seconds)

    @property
    def jobs_per_s(self) -> float:
        """Of the slowest of taking in, accepting and ending."""
        spans = [
            max(times) - min(times)
            for times in zip(
                *((job.submitted_at, job.accepted_at, job.ended_at) for job in self.jobs),
                strict=True,
            )
        ]
        return len(self.jobs) / max(self.seconds, *spans) if spans else 0.0

    @property
    def accepted_ms(self) -> list[float]:
        """By job: from its submit to its acceptance by the cluster's agent."""
        return [(job.accepted_at - job.submitted_at) * 1e3 for job in self.jobs]

    @property
    def cpu_ms_per_job(self) -> dict[str, float]:
        """By process."""
        jobs = max(1, len(self.jobs))
        return {name: seconds * 1e3 / jobs for name, seconds in self.cpu_s.items()}

    def why_not_held(self) -> str:
        """Why the rate was not held; empty when it was."""
        if self.errors:
            return f"{self.errors} calls failed"
        if len(self.jobs) < self.wanted * 0.99:
            return f"{len(self.jobs)} of {self.wanted} jobs are there"
        if open_jobs := sum(not job.succeeded for job in self.jobs):
            return f"{open_jobs} jobs did not succeed"
        if self.took_s > self.seconds * MOST_SLIP + MOST_BACKLOG_S:
            return f"taking in took {self.took_s:.1f} s"
        if (backlog := self._backlog()) > self.rate * MOST_BACKLOG_S:
            return f"{backlog} jobs were not accepted at the end"
        if (tail := self._tail_s()) > MOST_TAIL_S:
            return f"the last job ended {tail:.1f} s late"
        return ""

    def _backlog(self) -> int:
        end = max(job.submitted_at for job in self.jobs)
        return sum(job.accepted_at > end for job in self.jobs)

    def _tail_s(self) -> float:
        due = max(job.submitted_at for job in self.jobs) + self.job_seconds
        return max(job.ended_at for job in self.jobs) - due


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """50th, 95th and 99th; empty when there are no values."""
    ranked = sorted(values)
    return {
        name: round(ranked[min(len(ranked) - 1, int(share * len(ranked)))], 2)
        for name, share in SHARES.items()
        if ranked
    }
