"""A log of a parallel machine with and without bookings: what they cost, and what lending saves.

Every run has the same jobs: those of the log, and those of the bookings' owners, which without
bookings are jobs like any other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.policies.registry import policies
from atoll.sim.booked import Booked
from atoll.sim.driver import Driver
from atoll.sim.fleet import Fleet
from atoll.sim.readers.parallel import ParallelLog
from atoll.sim.record import JobRecord, Record, Stretch
from atoll.sim.reserving import Draw, draw, job, lent, machine_of, owners_works
from atoll.sim.work import Work

LOG: Final = "log"
INTERVAL_S: Final = 3600.0
"""Between two checkpoints of a preemptible job."""
ON_TIME_S: Final = 1.0
SHORT_S: Final = 10.0
"""Bound of the bounded slowdown."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A machine, the jobs of a log, and bookings."""

    machine: Fleet
    works: tuple[Work, ...]
    draws: tuple[Draw, ...]
    span_s: float
    """From the first submit of the log to the last; only work in it counts."""
    seed: int


@dataclass(slots=True)
class Outcome:
    """What came out of one run."""

    record: Record
    useful_s: float
    """Processor-seconds in the span that count in the end."""
    late_s: list[float] = field(default_factory=list)
    """By owner's job, from its window's start to its own; infinite for one that never began."""
    avebsld: float = 0.0
    """Of the log's jobs."""
    stopped: int = 0
    """Runs that were stopped."""


def trial(log: ParallelLog, processors: int, *, share: float, seed: int) -> Trial:
    """Bookings of a share of the capacity, and half of the jobs preemptible, both by `seed`."""
    rng = np.random.default_rng(seed)
    machine, span_s = machine_of(processors), float(log.submit[-1] - log.submit[0])
    works = tuple(_works(log, rng.random(len(log.job)) < 0.5))
    draws = tuple(draw(machine, share=share, span_s=span_s, rng=rng))
    return Trial(machine, works, draws, span_s, seed)


def without(given: Trial, *, tick: Callable[[int], None]) -> Outcome:
    """The run in which nothing is booked."""
    return _run(given, None, tick)


def booked(given: Trial, *, lend: bool, tick: Callable[[int], None]) -> Outcome:
    """A run with all bookings; `lend`: what no owner uses may run others' preemptible jobs."""
    return _run(given, Booked(lent(given.draws, lend=lend)), tick)


def lost_pct(outcome: Outcome, base: Outcome) -> float:
    """Percent of the work of a run without bookings that was not done."""
    return 100.0 * (1.0 - outcome.useful_s / base.useful_s) if base.useful_s else 0.0


def _run(given: Trial, windows: Booked | None, tick: Callable[[int], None]) -> Outcome:
    owners = owners_works(given.draws, inside=windows is not None)
    works = sorted([*given.works, *owners.values()], key=lambda work: work.at)
    driver = Driver(
        given.machine,
        policies(),
        seed=given.seed,
        on_progress=tick,
        sample_s=given.span_s,
        booked=windows,
    )
    record = driver.run(works)
    of_spec = {each.work.spec.name: each for each in record.jobs.values()}
    late = [
        _late_s(of_spec[each.kept.reservation.spec.name], each.start)
        for each in given.draws
        if each.used
    ]
    return Outcome(
        record,
        _useful_s(record.stretches, given.span_s),
        late,
        avebsld=_avebsld(record),
        stopped=sum(each.how == "PREEMPTED" for each in record.stretches),
    )


def _works(log: ParallelLog, may_stop: NDArray[np.bool_]) -> list[Work]:
    columns = (log.job, log.submit - log.submit[0], log.run, log.processors, log.request)
    rows = zip(*(column.tolist() for column in columns), may_stop.tolist(), strict=True)
    return [
        Work(
            at,
            job(
                f"log-{number}",
                LOG,
                processors,
                limit_s=request_s,
                interval_s=INTERVAL_S if stops else 0.0,
                preemptible=stops,
            ),
            run_s,
        )
        for number, at, run_s, processors, request_s, stops in rows
    ]


def _useful_s(stretches: Sequence[Stretch], span_s: float) -> float:
    return sum(each.units / BLOCKS_PER_DEVICE * _useful_of(each, span_s) for each in stretches)


def _useful_of(stretch: Stretch, span_s: float) -> float:
    inside = max(0.0, span_s - stretch.begun)
    return min(stretch.useful_s, inside)


def _late_s(owners: JobRecord, start: float) -> float:
    return float("inf") if owners.started is None else owners.started - start


def _avebsld(record: Record) -> float:
    every = [each for each in record.jobs.values() if each.work.spec.queue == LOG]
    return float(np.mean([_slowdown(each) for each in every]))


def _slowdown(each: JobRecord) -> float:
    """From the submit to the end, over the run; what is done twice counts as waiting."""
    took_s = each.ended - each.submitted if each.ended is not None else float("inf")
    return max(1.0, took_s / max(each.work.run_s, SHORT_S))
