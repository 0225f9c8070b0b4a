"""Measures the core alone: cycles of freeze, plan, verify and taking note, without any I/O.

For every size a process of its own, on one core: nodes of 8 GPUs, 200 shapes (100 that take a
part of a device, 60 of whole ones, 12 of which are gangs of 16 tasks, 40 of MIG slices), the
product's default policies and one queue. The fleet is filled to 90 % with jobs whose shapes are
drawn evenly. Then in every cycle jobs drawn from those that run end, as many of the same shapes
are submitted, and all are placed that fit: one release per placement, and the mix stays what it
is. A cycle takes a tenth of what runs, 4,096 jobs at most. Counted are tasks: a gang of 16 is 16
placements and 16 releases, placed whole or not at all.

`placements_per_s`: placements by the wall time of freeze, plan, verify, the ledger taking note
of what was placed, and of what has ended. Submitting jobs is not counted.
`placements_per_cpu_s`, `cpu_us_per_placement`: the same by CPU time, for a machine that has
other work.
`p99_us`: of one class batch, the jobs of one class that the kernel places in a row before it is
another class's turn, with choice of nodes and devices, quota, ledger arithmetic, and the scores
of all shapes brought up to date. Shapes are drawn one by one, so a batch is mostly one job; one
of gangs is 16 placements at least.
`queue_bytes_per_job`: memory of a million queued jobs beside their specs.

Progress goes to stderr; one JSON object, keyed by the number of nodes, is the last line.
"""

import argparse
import json
import subprocess
import sys

from tools.bench_core_queue import queue_bytes_per_job
from tools.bench_core_run import Scenario, measure

SIZES = (1_000, 10_000, 100_000)
OPERATIONS = 1_000_000


def main() -> None:
    """Measure every size in a process of its own, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--operations", type=int, default=OPERATIONS, help="per size, at least")
    parser.add_argument("--here", action="store_true", help="measure one size in this process")
    arguments = parser.parse_args()
    if arguments.here:
        scenario = Scenario(nodes=arguments.nodes[0], operations=arguments.operations)
        print(json.dumps(measure(scenario)))
        return
    memory = queue_bytes_per_job()
    print(f"a million queued jobs: {memory:.1f} bytes a job", file=sys.stderr, flush=True)
    sizes = {str(nodes): _elsewhere(nodes, arguments.operations) for nodes in arguments.nodes}
    print(
        json.dumps({n: {**numbers, "queue_bytes_per_job": memory} for n, numbers in sizes.items()})
    )


def _elsewhere(nodes: int, operations: int) -> dict[str, object]:
    command = [sys.executable, "-m", "tools.bench_core", "--here"]
    command += ["--nodes", str(nodes), "--operations", str(operations)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    numbers: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return numbers


if __name__ == "__main__":
    main()
