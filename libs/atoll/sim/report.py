"""What a record amounts to: one mapping of numbers, the same for every kind of simulation.

Goodput follows Google's decomposition for fleets (A. Wongpanich et al., "Machine Learning Fleet
Efficiency: Analyzing and Optimizing Large-Scale Google TPU Systems with ML Productivity Goodput",
2025, arXiv:2502.06982): scheduling goodput is the share of the capacity that was held by jobs that
ran whole, runtime goodput the share of that in which work was done that counts in the end.
Program goodput, how well a program uses its devices, is no matter of scheduling and taken for 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from atoll.sim.record import JobRecord, Record, Stretch
from atoll.sim.service.clock import START

SHORTEST_S: Final = 10.0
"""Bounded slowdown takes no job for shorter than this."""
QUANTILES: Final = (50, 90, 99)
NAMES: Final = ("p50", "p90", "p99")
EVICTED: Final = frozenset({"PREEMPTED", "PREEMPT", "BOOKING", "DRAIN"})
BROKEN: Final = frozenset({"NODE_DIED", "GUARD"})


def report(record: Record) -> dict[str, Any]:
    """All numbers; times in seconds, shares from 0 to 1. Jobs that did not start have no wait."""
    jobs = list(record.jobs.values())
    whole = capacity_seconds(record)
    return {
        "jobs": len(jobs),
        "states": _states(jobs),
        "simulated_s": round(record.ended, 3),
        "unit": record.unit,
        "occupancy": _ratio(held_seconds(record), whole),
        "fragmentation": _round(_mean([sample.fragmentation for sample in record.samples])),
        "wait_s": quantiles([job.wait_s for job in jobs]),
        "waits_by_size": waits_by_size(record),
        "bounded_slowdown": _round(_mean([b for job in jobs if (b := slowdown(job)) is not None])),
        "deadlines": deadlines(record),
        "evictions": sum(job.evictions for job in jobs),
        "stopped_by_faults": sum(stretch.how in BROKEN for stretch in record.stretches),
        "rescales": sum(job.rescales for job in jobs),
        "goodput": goodput(record),
        "queues": fairness(record),
    }


def goodput(record: Record) -> dict[str, float]:
    """Scheduling x runtime goodput, and where the rest of the held time went.

    Stretches that still run at the end count as useful so far.
    """
    whole, held = capacity_seconds(record), held_seconds(record)
    useful = sum(_useful(record, stretch) * stretch.units for stretch in record.stretches)
    restart = sum(stretch.restart_s * stretch.units for stretch in record.stretches)
    lost = max(0.0, held - useful - restart)
    return {
        "goodput": _ratio(useful, whole),
        "scheduling": _ratio(held, whole),
        "runtime": _ratio(useful, held),
        "useful_unit_s": round(useful, 1),
        "lost_unit_s": round(lost, 1),
        "restart_unit_s": round(restart, 1),
        "capacity_unit_s": round(whole, 1),
    }


def fairness(record: Record) -> dict[str, Any]:
    """By queue: its part of what was held, what its jobs waited, and what they lost."""
    found: dict[str, Any] = {}
    held = held_seconds(record)
    for name, jobs in sorted(_by_queue(record).items()):
        mine = sum(_ran(record, s) * s.units for job in jobs for s in job.stretches)
        lost = sum(s.lost_s * s.units for job in jobs for s in job.stretches if s.ended)
        found[name] = {
            "jobs": len(jobs),
            "share": _ratio(mine, held),
            "wait_s": quantiles([job.wait_s for job in jobs]),
            "bounded_slowdown": _round(
                _mean([b for job in jobs if (b := slowdown(job)) is not None])
            ),
            "evictions": sum(job.evictions for job in jobs),
            "lost_unit_s": round(lost, 1),
        }
    return found


def deadlines(record: Record) -> dict[str, Any]:
    """How many of the jobs with a deadline met it; one that has not ended has not met it."""
    mine = [job for job in record.jobs.values() if job.work.spec.deadline_at]
    met = sum(_met(job) for job in mine)
    return {"jobs": len(mine), "met": met, "met_ratio": _ratio(met, len(mine)) if mine else None}


def waits_by_size(record: Record) -> dict[str, Any]:
    """Waits by the size of jobs, in doublings: `1-2` is more than one device and up to two."""
    classes: dict[str, list[float | None]] = {}
    one = 100 if record.unit == "device blocks" else 1000
    for job in sorted(record.jobs.values(), key=lambda job: (job.units, job.id)):
        classes.setdefault(size_class(job.units / one), []).append(job.wait_s)
    return {name: {"jobs": len(waits)} | quantiles(waits) for name, waits in classes.items()}


def size_class(devices: float) -> str:
    """The doubling that a size is in."""
    if devices <= 0:
        return "0"
    if devices < 1:
        return "<1"
    upper = 1
    while upper < devices:
        upper *= 2
    return "1" if upper == 1 else str(upper) if upper == 2 else f"{upper // 2 + 1}-{upper}"


def slowdown(job: JobRecord) -> float | None:
    """max(1, (time from submit to end) / max(run time, 10 s)); None before its end."""
    if job.ended is None or job.state != "SUCCEEDED":
        return None
    return max(1.0, (job.ended - job.submitted) / max(job.work.run_s, SHORTEST_S))


def quantiles(values: Iterable[float | None]) -> dict[str, float | None]:
    """p50, p90, p99 and the mean of those that are known."""
    known = [value for value in values if value is not None]
    if not known:
        return dict.fromkeys((*NAMES, "mean"))
    found = np.percentile(np.array(known), QUANTILES).tolist()
    return dict(zip((*NAMES, "mean"), (round(v, 3) for v in (*found, _mean(known))), strict=True))


def held_seconds(record: Record) -> float:
    """Unit-seconds that runs held."""
    return sum(_ran(record, stretch) * stretch.units for stretch in record.stretches)


def capacity_seconds(record: Record) -> float:
    """Unit-seconds that were up."""
    changes = [*record.capacity, (record.ended, 0)]
    return sum(
        units * max(0.0, min(after, record.ended) - at)
        for (at, units), (after, _) in pairwise(changes)
    )


def timeline(record: Record, points: np.ndarray) -> np.ndarray:
    """Units held at each of the times, which are ascending."""
    steps: list[tuple[float, int]] = []
    for stretch in record.stretches:
        steps.append((stretch.begun, stretch.units))
        steps.append((record.ended if stretch.ended is None else stretch.ended, -stretch.units))
    steps.sort()
    times = np.array([at for at, _ in steps])
    sums = np.concatenate(([0], np.cumsum([change for _, change in steps])))
    return np.asarray(sums[np.searchsorted(times, points, side="right")])


def _ran(record: Record, stretch: Stretch) -> float:
    return (record.ended if stretch.ended is None else stretch.ended) - stretch.begun


def _useful(record: Record, stretch: Stretch) -> float:
    return stretch.useful_s if stretch.ended is not None else _ran(record, stretch)


def _met(job: JobRecord) -> bool:
    due = job.work.spec.deadline_at - START
    return job.state == "SUCCEEDED" and job.ended is not None and job.ended <= due


def _by_queue(record: Record) -> Mapping[str, list[JobRecord]]:
    found: dict[str, list[JobRecord]] = {}
    for job in record.jobs.values():
        found.setdefault(job.work.spec.queue, []).append(job)
    return found


def _states(jobs: Sequence[JobRecord]) -> dict[str, int]:
    names = [job.state for job in jobs]
    return {name: names.count(name) for name in sorted(set(names))}


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole > 0 else 0.0
