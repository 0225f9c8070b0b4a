"""`atoll sim pack`."""

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.progress import track

from atoll.adapters.system import SystemClock
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.sim.commands.written import check_out, check_seed
from atoll.sim.pack import Packed, arrivals, capacity_milli
from atoll.sim.pack import pack as packed
from atoll.sim.readers.openb import Pod, TraceNode, read_nodes, read_pods

Policy = Literal["atoll", "fgd", "bestfit", "dotprod", "random"]
SCORES: Final[dict[Policy, str]] = {
    "atoll": "atoll",
    "fgd": "fgd",
    "bestfit": "best_fit",
    "dotprod": "dotprod",
    "random": "random",
}


def pack(
    *,
    nodes: Path,
    pods: Path,
    policy: Policy = "atoll",
    percent: Annotated[int, Parameter(name="--arrivals")] = 130,
    seed: int = 42,
    seeds: str = "",
    out: Path | None = None,
) -> int:
    """Pack the pods of an openb list one by one; nothing leaves, what fits nowhere is dropped.

    The last line of the output is one JSON object: `allocated_pct` is the mean over the
    seeds of the GPUs held in the end, in % of capacity; `per_seed` has them singly.

    Args:
        nodes: Node list, plain or gzipped.
        pods: Pod list, plain or gzipped.
        policy: Which node and device a pod gets.
        percent: Pods arrive until their GPU requests reach so many % of capacity.
        seed: Of the order of arrival.
        seeds: A range such as 42-51 in place of one seed.
        out: Write `arrival,pod,node,devices` for every pod of the one seed.
    """
    check_out(out)
    check_seed(seed)
    if percent < 1:
        raise InvalidInput((FieldViolation("arrivals", "at least 1 percent"),))
    chosen = _seeds(seeds, seed)
    if out is not None and len(chosen) > 1:
        raise InvalidInput((FieldViolation("out", "one seed can be written, not several"),))
    runs = list(_runs(read_nodes(nodes), read_pods(pods), policy, percent=percent, seeds=chosen))
    if out is not None:
        write(out, runs[0])
    sys.stdout.write(json.dumps(report(runs, policy, chosen)) + "\n")
    return 0


def report(runs: list[Packed], policy: Policy, seeds: range) -> dict[str, object]:
    """The numbers of some runs, one per seed."""
    shares = [run.allocated_pct for run in runs]
    placed = sum(len(run.held) for run in runs)
    return {
        "allocated_pct": round(sum(shares) / len(shares), 4),
        "per_seed": [round(share, 4) for share in shares],
        "placements_per_s": round(placed / max(1e-9, sum(run.seconds for run in runs))),
        "policy": policy,
        "seeds": [seeds[0], seeds[-1]],
        "arrived": [len(run.arrived) for run in runs],
        "placed": [len(run.held) for run in runs],
    }


def write(path: Path, run: Packed) -> None:
    """Every pod in the order of arrival with the devices that it got, in milli-GPU."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("arrival", "pod", "node", "devices"))
        for place, pod in enumerate(run.arrived):
            held = run.held.get(place)
            devices = ";".join(f"{index}:{milli}" for index, milli in held.devices) if held else ""
            rows.writerow((place, pod.name, held.node if held else "", devices))


def _seeds(text: str, seed: int) -> range:
    if not text:
        return range(seed, seed + 1)
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    found = range(int(match[1]), int(match[2]) + 1) if match else range(0)
    if not found:
        raise InvalidInput((FieldViolation("seeds", "write a range such as 42-51"),))
    return found


def _runs(
    nodes: list[TraceNode], pods: list[Pod], policy: Policy, *, percent: int, seeds: range
) -> Iterator[Packed]:
    capacity, clock = capacity_milli(nodes), SystemClock()
    # The first run of a process loads the kernels; it is not to be timed.
    packed(nodes[:1], pods[:1], known=pods, policy=SCORES[policy], seed=0, clock=clock)
    for seed in track(seeds, "seeds", console=Console(stderr=True), transient=True):
        arrived = arrivals(pods, capacity_milli=capacity, percent=percent, seed=seed)
        yield packed(nodes, arrived, known=pods, policy=SCORES[policy], seed=seed, clock=clock)
