"""`atoll sim backfill`."""

import csv
import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress

from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.core.policies.time_order import TIME_ORDERS
from atoll.sim.backfill import Outcome, coverage, median_error_s, simulate_log, slowdowns
from atoll.sim.commands.written import check_out
from atoll.sim.readers.parallel import FIELD, ParallelLog
from atoll.sim.readers.pwa import read_pwa
from atoll.sim.readers.swf import read_swf
from atoll.sim.readers.table import read_text

SWF: Final = ".swf"
COMMENT: Final = ";"


def backfill(
    *,
    workload: Path,
    procs: int,
    policy: Literal["atoll", "easy", "conservative", "fcfs"] = "atoll",
    reservations: Annotated[int, Parameter(name=("--reservations", "-k"))] = 1,
    skip: float = 0.0,
    out: Path | None = None,
) -> int:
    """Replay a log of a parallel machine: how long its jobs wait, and how well that was told.

    The last line of the output is one JSON object. `avebsld` is the mean of
    max(1, (wait + run) / max(run, 10 s)); forecasts are those that jobs are given at submit
    when they cannot start at once; without any, what is told of them is null.

    Args:
        workload: Log in the Standard Workload Format (.swf), or a table (.csv); may be gzipped.
        procs: Processors of the machine.
        policy: The product's own, or one to compare it with.
        reservations: Blocked jobs that hold one, 1 to 32.
        skip: Leave out the first so many percent of the log.
        out: Write `job_id,start_s`.
    """
    check_out(out)
    log = read_log(workload, procs=procs, skip=skip)
    order = TIME_ORDERS[policy]
    if not 1 <= reservations <= 32:
        raise InvalidInput((FieldViolation("reservations", "1 to 32"),))
    if not order.strict:
        order = order._replace(reservations=reservations)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(policy, total=len(log.job))
        outcome = simulate_log(
            log, procs, order, tick=lambda came: progress.update(task, completed=came)
        )
    if out is not None:
        _write(out, log, outcome)
    head = {"workload": workload.name, "policy": policy, "procs": procs, "skip": skip}
    sys.stdout.write(json.dumps(head | report(log, outcome)) + "\n")
    return 0


def read_log(path: Path, *, procs: int, skip: float) -> ParallelLog:
    """A log without its first percent, all of whose jobs fit the machine; raises InvalidInput."""
    if not 0 <= skip < 100:
        raise InvalidInput((FieldViolation("skip", "from 0 to below 100 percent"),))
    if procs < 1:
        raise InvalidInput((FieldViolation("procs", "a machine has at least one processor"),))
    log = (read_swf if _is_swf(path) else read_pwa)(path).without_first(skip)
    wide = np.flatnonzero(log.processors > procs)
    if len(wide):
        job, most = int(log.job[wide[0]]), int(log.processors.max())
        why = f"job {job} needs more; the largest job needs {most}"
        raise InvalidInput((FieldViolation("procs", why),))
    return log


def _is_swf(path: Path) -> bool:
    """By its name, or because it begins as such logs do."""
    named = any(suffix.lower() == SWF for suffix in path.suffixes)
    return named or read_text(path, field=FIELD).lstrip().startswith(COMMENT)


def report(log: ParallelLog, outcome: Outcome) -> dict[str, Any]:
    """The numbers of a run, beside those of the published one where the log has it."""
    told = int((outcome.forecast >= 0).sum())
    covered = coverage(outcome)
    numbers = {
        "avebsld": round(float(slowdowns(outcome.wait, log.run).mean()), 4),
        "mean_wait_s": round(float(outcome.wait.mean()), 1),
        "max_wait_s": round(float(outcome.wait.max()), 1),
        "jobs": len(log.job),
        "forecasts": told,
        "eta_coverage_p50": round(covered[0], 4) if told else None,
        "eta_coverage_p90": round(covered[1], 4) if told else None,
        "eta_abs_error_s": round(median_error_s(outcome), 1) if told else None,
    }
    if np.isnan(log.published_wait).any():
        return numbers
    published = slowdowns(log.published_wait, log.run)
    return numbers | {
        "easy_published_avebsld": round(float(published.mean()), 4),
        "easy_published_max_wait_s": round(float(log.published_wait.max()), 1),
    }


def _write(path: Path, log: ParallelLog, outcome: Outcome) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("job_id", "start_s"))
        rows.writerows(zip(log.job.tolist(), outcome.start.tolist(), strict=True))
