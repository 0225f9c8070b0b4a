"""`atoll sim deadlines`."""

import csv
import json
import os
import sys
from pathlib import Path
from typing import Any, Final, Literal

from rich.console import Console
from rich.progress import Progress

from atoll.core.engine.deadlines.terms import DeadlineJob, useful
from atoll.core.model.deadline import Chance
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.sim.commands.written import check_out
from atoll.sim.deadlines import Arrival, Outcome, simulate
from atoll.sim.readers.elasticflow import DEVICES_PER_NODE, NODES, TraceJob, read_cluster

TRACES: Final = "ATOLL_TRACES"


def deadlines(
    *,
    cluster: int,
    rescale_cost: int = 30,
    policy: Literal["atoll", "elasticflow"] = "atoll",
    nodes: int | None = None,
    traces: Path | None = None,
    out: Path | None = None,
) -> int:
    """Admit and run the jobs of an ElasticFlow trace: how many meet their deadlines.

    The last line of the output is one JSON object. `met_ratio` is over all jobs of the
    trace, those that no cluster could finish in time and those that were refused included.

    Args:
        cluster: Number of the trace, 1 to 10.
        rescale_cost: Seconds in which a job does nothing after its start and each change of size.
        policy: The product's own, or ElasticFlow's: minimum satisfactory shares once a minute.
        nodes: Nodes of 8 devices; left out: as in the published simulation.
        traces: Folder of the traces; left out: from ATOLL_TRACES.
        out: Write `job_id,start_s,end_s,gpus` for every stretch in which a job held devices.
    """
    check_out(out)
    if nodes is not None and nodes < 1:
        raise InvalidInput((FieldViolation("nodes", "at least one"),))
    if rescale_cost < 0:
        raise InvalidInput((FieldViolation("rescale_cost", "0 or more seconds"),))
    jobs = read_cluster(_folder(traces), cluster)
    devices = DEVICES_PER_NODE * (nodes or _nodes(cluster))
    arrivals = [_arrival(i, job, rescale_cost) for i, job in enumerate(jobs)]
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"cluster {cluster:02}", total=len(jobs))
        outcome = simulate(arrivals, devices, policy=policy, tick=lambda: progress.advance(task))
    if out is not None:
        _write(out, outcome, jobs)
    head = {"cluster": cluster, "policy": policy, "devices": devices, "jobs": len(jobs)}
    sys.stdout.write(json.dumps(head | report(outcome, arrivals)) + "\n")
    return 0


def report(outcome: Outcome, arrivals: list[Arrival]) -> dict[str, Any]:
    """The numbers of a run; ratios are over all arrivals."""
    met = set(outcome.met(arrivals))
    told: dict[Chance, list[int]] = {chance: [] for chance in Chance}
    for job, answer in outcome.answers.items():
        told[answer.chance].append(job)
    ran = {stretch.job for stretch in outcome.stretches}
    return {
        "met_ratio": round(len(met) / len(arrivals), 6),
        "guarantees_broken": sum(job not in met for job in told[Chance.GUARANTEED]),
        **{chance.value: len(jobs) for chance, jobs in told.items()},
        "likely_met": sum(job in met for job in told[Chance.LIKELY]),
        "changes_of_size": len(outcome.stretches) - len(ran),
        "gpu_hours": round(sum(s.devices * (s.end - s.start) for s in outcome.stretches) / 3600),
    }


def _folder(traces: Path | None) -> Path:
    if traces is not None:
        return traces
    named = os.environ.get(TRACES)
    if not named:
        raise InvalidInput((FieldViolation("traces", f"name a folder, here or in {TRACES}"),))
    return Path(named)


def _nodes(cluster: int) -> int:
    if cluster not in NODES:
        known = ", ".join(map(str, NODES))
        raise InvalidInput((FieldViolation("cluster", f"name its --nodes; known are {known}"),))
    return NODES[cluster]


def _arrival(number: int, job: TraceJob, cost: int) -> Arrival:
    sizes = useful(job.throughput)
    return Arrival(
        job.submitted_s, DeadlineJob(number, job.deadline_s, sizes, job.iterations, cost)
    )


def _write(path: Path, outcome: Outcome, jobs: list[TraceJob]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("job_id", "start_s", "end_s", "gpus"))
        for s in sorted(outcome.stretches, key=lambda s: (s.start, s.job)):
            rows.writerow((jobs[s.job].id, s.start, s.end, s.devices))
