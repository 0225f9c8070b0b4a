"""What is to be run: the jobs of a cluster of the ElasticFlow traces, as its users know them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.series import Floats, Ints
from atoll.sim.readers.elasticflow_raw import RawJob

GRID_S: Final = 900.0
"""Demand is looked at so often when a capacity is chosen."""
NODE_DEVICES: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """(J) jobs by their submits. Times are seconds from the start of the trace."""

    submitted_s: Floats
    run_s: Floats
    """How long each runs; only its end tells."""
    expected_s: Floats
    """How long its user believes that it runs."""
    devices: Ints


def work_of(jobs: Sequence[RawJob], *, error: float, seed: int) -> Work:
    """The jobs; what is expected is off by factors of which the log deviates by `error`."""
    submitted, run, devices = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    run = np.maximum(run, 1.0)
    off = np.exp(error * np.random.default_rng([seed, 1]).standard_normal(len(run)))
    return Work(submitted, run, run * off, devices.astype(np.int64))


def capacity_of(work: Work, quantile: float) -> int:
    """Devices that are enough for this part of the time, in whole nodes; the largest job fits."""
    least = max(wanted_at(work, quantile), float(work.devices.max()))
    return int(np.ceil(least / NODE_DEVICES)) * NODE_DEVICES


def wanted_at(work: Work, quantile: float) -> float:
    """Devices that would be in use at a quantile of the time if nobody had to wait."""
    times = np.arange(work.submitted_s[0], work.submitted_s[-1] + 1, GRID_S)
    ends = work.submitted_s + work.run_s
    wanted = _up_to(work.submitted_s, work.devices, times) - _up_to(ends, work.devices, times)
    return float(np.quantile(wanted, quantile))


def _up_to(at_s: Floats, amount: Ints, times: Floats) -> Floats:
    order = np.argsort(at_s, kind="stable")
    sums = np.concatenate([[0], np.cumsum(amount[order])])
    return np.asarray(sums[np.searchsorted(at_s[order], times, side="right")], dtype=float)
