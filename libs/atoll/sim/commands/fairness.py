"""`atoll sim fairness`."""

import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.core.policies.registry import ORDERS, SCORES, policies
from atoll.sim.commands.written import check_out
from atoll.sim.fairness import Outcome, Part, parts_of, quotas, run_private, run_shared
from atoll.sim.readers.philly import PhillyJob, read_philly

MANY: Final = 100
"""Jobs of a virtual cluster from which on its mean says something."""
SLACK_S: Final = 60.0


def fairness(
    *,
    trace: Path,
    nodes_ratio: float = 1.0,
    checkpoint_h: float = 1.0,
    order: str = "fair_share",
    score: str = "atoll",
    out: Path | None = None,
) -> int:
    """Run the virtual clusters of the Philly trace each by itself and all in one.

    The last line of the output is one JSON object. `worse` names the virtual clusters of at
    least 100 jobs that wait more than a minute longer on average than on nodes of their own.
    A wait is finish - submit - duration, so that what is stopped and done again counts.

    Args:
        trace: The trace as CSV, may be gzipped.
        nodes_ratio: Nodes of the shared cluster over those of all private ones.
        checkpoint_h: Hours between two checkpoints of a job; 0: it makes none.
        order: Policy by which the queue is ordered.
        score: Policy by which nodes are chosen.
        out: Write `cluster,wait_s,wait_private_s` for every job, in the order of submits.
    """
    check_out(out)
    _check(nodes_ratio, checkpoint_h)
    _check_name("order", order, ORDERS)
    _check_name("score", score, SCORES)
    jobs = read_philly(trace)
    parts = parts_of(jobs)
    nodes = math.floor(nodes_ratio * sum(part.nodes for part in parts) + 1e-9)
    chosen = policies(order=order, score=score)
    granted = quotas(parts, nodes * 8)
    console = Console(stderr=True)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("private", total=2 * len(jobs))

        def tick(ended: int) -> None:
            progress.advance(bar, ended)

        own = [
            run_private(part, jobs, chosen, checkpoint_s=checkpoint_h * 3600, tick=tick)
            for part in parts
        ]
        progress.update(bar, description="shared")
        shared = run_shared(
            parts, jobs, chosen, nodes=nodes, checkpoint_s=checkpoint_h * 3600, tick=tick
        )
    private = {name: waits for each in own for name, waits in each.waits.items()}
    report = report_of(jobs, parts, private=private, shared=shared, granted=granted)
    console.print(_table(report["per_vc"]))
    if out is not None:
        _write(out, parts, private=private, shared=shared)
    head = {"nodes": nodes, "nodes_private": sum(part.nodes for part in parts), "order": order}
    sys.stdout.write(json.dumps(head | report) + "\n")
    return 0


def report_of(
    jobs: Sequence[PhillyJob],
    parts: Sequence[Part],
    *,
    private: Mapping[str, Sequence[float]],
    shared: Outcome,
    granted: Mapping[str, int],
) -> dict[str, Any]:
    """The numbers; waits in seconds."""
    per_vc = {
        part.name: {
            "jobs": part.jobs,
            "nodes": part.nodes,
            "quota_gpus": granted[part.name] / 100,
            "wait_s": round(fmean(shared.waits[part.name]), 3),
            "wait_private_s": round(fmean(private[part.name]), 3),
        }
        for part in parts
    }
    return {
        "jobs": len(jobs),
        "per_vc": per_vc,
        "worse": [part.name for part in parts if _is_worse(per_vc[part.name])],
        "mean_wait_s": round(fmean(w for waits in shared.waits.values() for w in waits), 3),
        "mean_wait_private_s": round(fmean(w for waits in private.values() for w in waits), 3),
        "evictions": shared.evictions,
        "lost_gpu_h": round(shared.lost_gpu_h, 3),
        "gpu_h": round(math.fsum(job.gpus * job.run_s for job in jobs) / 3600, 3),
        "plans": shared.plans,
    }


def _check(nodes_ratio: float, checkpoint_h: float) -> None:
    if not 0 < nodes_ratio <= 100:
        raise InvalidInput((FieldViolation("nodes_ratio", "give a number above 0"),))
    if not 0 <= checkpoint_h <= 1e6:
        raise InvalidInput((FieldViolation("checkpoint_h", "give 0 or more hours"),))


def _check_name(field: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise InvalidInput((FieldViolation(field, f"known are {', '.join(sorted(known))}"),))


def _is_worse(numbers: Mapping[str, float]) -> bool:
    longer = numbers["wait_s"] - numbers["wait_private_s"]
    return numbers["jobs"] >= MANY and longer > SLACK_S


def _table(per_vc: Mapping[str, Mapping[str, float]]) -> Table:
    columns = ("jobs", "nodes", "quota_gpus", "wait_s", "wait_private_s")
    table = Table("cluster", *columns)
    for name, numbers in per_vc.items():
        table.add_row(name, *(f"{numbers[column]:g}" for column in columns))
    return table


def _write(
    path: Path,
    parts: Sequence[Part],
    *,
    private: Mapping[str, Sequence[float]],
    shared: Outcome,
) -> None:
    with path.open("w") as file:
        file.write("cluster,wait_s,wait_private_s\n")
        for part in parts:
            pairs = zip(shared.waits[part.name], private[part.name], strict=True)
            file.writelines(f"{part.name},{one:.3f},{other:.3f}\n" for one, other in pairs)
