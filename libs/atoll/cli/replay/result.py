"""The numbers of a replay."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from atoll.cli.replay.checks import check_jobs
from atoll.cli.replay.drive import Progress
from atoll.client.views import JobInfo
from atoll.core.model.resources import BLOCKS_PER_DEVICE

PERCENTS: Final = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Result:
    """What a replay measured."""

    run: str
    jobs: int
    seconds: float
    jobs_per_second: float
    states: dict[str, int]
    rolled_back: int
    submit_to_placed_ms: Latency | None
    """None when no job was placed."""
    submit_to_accepted_ms: Latency | None
    devices: int
    peak_devices: float
    peak_percent: float
    """Of the accelerators of the node list, allocated at the same time."""
    looks_at_nodes: int
    ledger_checked: bool
    overcommitted: tuple[str, ...]
    """Every time that a device had more than it has; empty is well."""


def result_of(
    run: str,
    jobs: Sequence[JobInfo],
    progress: Progress,
    *,
    devices: int,
    ledger_faults: Sequence[str] | None,
) -> Result:
    """The numbers; `ledger_faults` is None when no ledger was given."""
    usage, faults = check_jobs(jobs)
    return Result(
        run=run,
        jobs=len(jobs),
        seconds=round(progress.took_s, 3),
        jobs_per_second=round(len(jobs) / progress.took_s, 2) if progress.took_s else 0.0,
        states=dict(sorted(Counter(job.state.value for job in jobs).items())),
        rolled_back=sum(1 for job in jobs if job.rollbacks),
        submit_to_placed_ms=latency([_ms(job, job.placed_at) for job in jobs if job.placed_at]),
        submit_to_accepted_ms=latency([
            _ms(job, job.accepted_at) for job in jobs if job.accepted_at
        ]),
        devices=devices,
        peak_devices=usage.peak_blocks / BLOCKS_PER_DEVICE,
        peak_percent=round(usage.peak_blocks / devices, 2) if devices else 0.0,
        looks_at_nodes=progress.looks,
        ledger_checked=ledger_faults is not None,
        overcommitted=(*faults, *progress.faults, *(ledger_faults or ())),
    )


def latency(values: Sequence[float]) -> Latency | None:
    """Percentiles by nearest rank."""
    if not values:
        return None
    ordered = sorted(values)
    ranks = [max(0, -(-percent * len(ordered) // 100) - 1) for percent in PERCENTS]
    return Latency(*(round(ordered[rank], 1) for rank in ranks))


def _ms(job: JobInfo, moment: float) -> float:
    return max(0.0, moment - job.submitted_at) * 1000
