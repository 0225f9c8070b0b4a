"""Measures by how much bookings slow a cycle, against none in the same run.

10,000 nodes in 100 clusters, filled and kept full like the fleet of `bench_core`, and 10,000
windows over a year, of one to eight nodes each and up to eight hours long: a third of whole nodes,
the others of four devices and half of a node; half of them lend. The same world has cycles
without windows and cycles with them by turns, so that what else the machine does counts for both.

Times are CPU times of whole cycles: freeze, plan, verify, the ledger taking note, and what comes
and goes. Progress goes to stderr; the last line is a JSON object. `slowdown`: time of a cycle
with windows by that of one without; `per_placement`: the same by the tasks that were placed.
"""

import argparse
import json
import os
import statistics
import sys
import time
from unittest import mock

import numpy as np

from atoll.core.engine.kernels import warm
from atoll.core.model.booking import NodeShare, OccurrenceId, Owners, Window
from atoll.core.model.ids import ClusterName, NodeId, QueueName
from atoll.core.model.resources import DeviceGrant
from atoll.runtime.garbage import settle
from tools import bench_core_run
from tools.bench_core_run import MOST_JOBS, PART, Bench

YEAR_S = 365 * 86_400.0
GIB = 1 << 30
CLUSTERS = 100
ROUNDS, CYCLES, UNCOUNTED = 4, 8, 2


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--windows", type=int, default=10_000)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.nodes, arguments.windows)))


def measure(nodes: int = 10_000, count: int = 10_000) -> dict[str, float]:
    """Both times and their ratios. Takes the whole process onto one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    warm()
    with mock.patch.object(bench_core_run, "CLUSTERS", CLUSTERS):
        bench = Bench(nodes)
    bench.fill()
    settle()
    windows = made_windows(nodes, count)
    jobs = max(1, min(MOST_JOBS, len(bench.runs) // PART))
    seconds: dict[bool, list[float]] = {False: [], True: []}
    placed: dict[bool, int] = {False: 0, True: 0}
    for turn in range(2 * ROUNDS):
        booked = turn % 2 == 1
        bench.world.set_windows(windows if booked else ())
        for at in range(UNCOUNTED + CYCLES):
            # Of this process alone, whatever else the machine does.
            begin = time.process_time()
            tasks, _ = bench.exchange(jobs)
            if at >= UNCOUNTED:
                seconds[booked].append(time.process_time() - begin)
                placed[booked] += tasks
        print(f"round {turn}: {seconds[booked][-1]:.3f} s a cycle", file=sys.stderr, flush=True)
    plain, with_them = (statistics.median(seconds[booked]) for booked in (False, True))
    each = [sum(seconds[booked]) / placed[booked] for booked in (False, True)]
    return {
        "windows": count,
        "nodes": nodes,
        "cycle_ms_without": round(plain * 1e3, 1),
        "cycle_ms_with": round(with_them * 1e3, 1),
        "slowdown": round(with_them / plain, 3),
        "per_placement": round(each[1] / each[0], 3),
        "placed_without": placed[False],
        "placed_with": placed[True],
    }


def made_windows(nodes: int, count: int) -> list[Window]:
    """Windows over a year, by chance but the same every time."""
    rng = np.random.default_rng(11)
    return [_window(number, nodes, rng) for number in range(1, count + 1)]


def _window(number: int, nodes: int, rng: np.random.Generator) -> Window:
    start = float(rng.uniform(60.0, YEAR_S))
    inside = nodes // CLUSTERS
    cluster = int(rng.integers(CLUSTERS))
    size = min(inside, int(rng.integers(1, 9)))
    chosen = 1 + cluster * inside + rng.choice(inside, size, replace=False)
    whole = rng.random() < 1 / 3
    return Window(
        OccurrenceId(number),
        f"booking-{number}",
        start,
        start + float(rng.uniform(600.0, 8 * 3600.0)),
        ClusterName(f"c{cluster}"),
        tuple(_share(int(node), whole=whole) for node in chosen),
        owners=Owners(queues=(QueueName(f"team{rng.integers(50)}"),)),
        lend=bool(rng.random() < 0.5),
    )


def _share(node: int, *, whole: bool) -> NodeShare:
    if whole:
        return NodeShare(NodeId(node), f"n{node}", whole=True)
    devices = tuple(DeviceGrant(index, 100) for index in range(4))
    return NodeShare(NodeId(node), f"n{node}", 64_000, 1024 * GIB, devices)


if __name__ == "__main__":
    main()
