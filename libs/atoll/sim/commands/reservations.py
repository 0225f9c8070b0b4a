"""`atoll sim reservations`."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.progress import Progress

from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.sim.commands.backfill import read_log
from atoll.sim.commands.written import check_seed
from atoll.sim.readers.parallel import ParallelLog
from atoll.sim.reservations import ON_TIME_S, Outcome, Trial, booked, lost_pct, trial, without

DAY_S: Final = 86_400.0


def reservations(
    *,
    workload: Path,
    procs: int,
    share: float = 20.0,
    seed: int = 0,
    skip: float = 0.0,
    days: float = 0.0,
) -> int:
    """Book a part of a parallel machine: do owners start on time, and what does it cost others.

    The log runs three times through the scheduler's own cycle: without bookings, with bookings
    that lend, and with bookings that do not. The last line of the output is one JSON object;
    `utilisation_lost_pct` is the part of the useful work of the first run that the second did not
    do in the same span of time, `avebsld` that of the log's jobs in the second.

    Args:
        workload: Log in the Standard Workload Format (.swf), or a table (.csv); may be gzipped.
        procs: Processors of the machine.
        share: Percent of the capacity that is booked, in random windows.
        seed: Of the windows, of what owners use, and of which jobs may be stopped.
        skip: Leave out the first so many percent of the log.
        days: Only so many days of what is left; 0: all.
    """
    if not 0 < share < 100:
        raise InvalidInput((FieldViolation("share", "above 0 and below 100 percent"),))
    check_seed(seed)
    if not days >= 0:
        raise InvalidInput((FieldViolation("days", "0 or more"),))
    log = _first(read_log(workload, procs=procs, skip=skip), days)
    if not (log.run.any() and log.submit[-1] > log.submit[0]):
        raise InvalidInput((
            FieldViolation("workload", "its jobs do nothing, or come all at once"),
        ))
    given = trial(log, procs, share=share / 100, seed=seed)
    jobs = len(given.works) + sum(each.used > 0 for each in given.draws)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        tasks = [progress.add_task(name, total=jobs) for name in ("without", "lent", "not lent")]
        ticks = [lambda ended, task=task: progress.advance(task, ended) for task in tasks]
        base = without(given, tick=ticks[0])
        lent = booked(given, lend=True, tick=ticks[1])
        kept = booked(given, lend=False, tick=ticks[2])
    head = {"workload": workload.name, "procs": procs, "seed": seed, "jobs": len(log.job)}
    sys.stdout.write(json.dumps(head | report(given, base, lent=lent, kept=kept)) + "\n")
    return 0


def report(given: Trial, base: Outcome, *, lent: Outcome, kept: Outcome) -> dict[str, Any]:
    """The numbers of the three runs: without bookings, with those that lend, that do not."""
    late = np.array([*lent.late_s, *kept.late_s])
    held_s = sum(each.held_s for each in given.draws)
    with_lending, without_lending = lost_pct(lent, base), lost_pct(kept, base)
    return {
        "on_time_ratio": round(float((late <= ON_TIME_S).mean()), 6) if len(late) else 1.0,
        "latest_start_s": round(float(late.max(initial=0.0)), 3),
        "utilisation_lost_pct": round(with_lending, 3),
        "utilisation_lost_without_lending_pct": round(without_lending, 3),
        "won_back_pct": _won_back(with_lending, without_lending),
        "avebsld": round(lent.avebsld, 4),
        "avebsld_without_lending": round(kept.avebsld, 4),
        "avebsld_without_bookings": round(base.avebsld, 4),
        "bookings": len(given.draws),
        "owners_jobs": len(lent.late_s),
        "booked_pct": round(100 * held_s / (given.span_s * len(given.machine.nodes)), 2),
        "used_pct": round(100 * sum(e.used * e.held_s for e in given.draws) / held_s, 2),
        "stopped_for_bookings": lent.stopped,
        "stopped_without_lending": kept.stopped,
        "days": round(given.span_s / DAY_S, 1),
    }


def _won_back(with_lending: float, without_lending: float) -> float | None:
    """None: nothing was lost that could be."""
    if without_lending <= 0:
        return None
    return round(100 * (1 - with_lending / without_lending), 1)


def _first(log: ParallelLog, days: float) -> ParallelLog:
    if not days:
        return log
    return log.chosen(np.flatnonzero(log.submit <= log.submit[0] + days * DAY_S))
