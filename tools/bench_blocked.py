"""Measures what blocked gangs cost a cycle: `python -m tools.bench_blocked`; one JSON object last.

The fleet of `make bench-core`, all but full of runs that all have a time limit, and 16 gangs that
each ask for a 270th to a 400th of the nodes as a whole: none of them fits, all ask for
reservations. `plan_ms` is the CPU time of one cycle by the number of reservations per cluster,
the best of three.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from typing import Final

import numpy as np

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.kernels import warm
from atoll.core.engine.memo import Memo
from atoll.core.model.ids import JobId
from atoll.core.model.plan import GangRequest, GroupRequest, PendingJob, RunTerms
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.policies.registry import policies
from atoll.core.state.snapshot import Snapshot
from tools.bench_core_run import QUEUE, Bench
from tools.bench_core_shapes import DEVICES, GIB

GANGS: Final = 16
RESERVATIONS: Final = (0, 1, 16)
TRIES: Final = 3
HOUR: Final = 3600.0
LIMITS: Final = tuple(HOUR * hours for hours in (1, 2, 4, 6, 8, 12, 16, 24, 36, 48))


class Limited(Bench):
    """A bench whose jobs all have a time limit."""

    full = 0.995

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self.kinds = [
            replace(kind, request=replace(kind.request, terms=RunTerms(limit)))
            for kind, limit in zip(self.kinds, _drawn(len(self.kinds)), strict=True)
        ]


def measure(nodes: int) -> dict[str, object]:
    """CPU milliseconds of a cycle with blocked gangs."""
    bench = Limited(nodes)
    bench.fill()
    bench.world.upsert_pending([_gang(number, nodes) for number in range(GANGS)])
    snapshot, memo = bench.world.freeze(HOUR), Memo()
    found: dict[str, object] = {"running": len(bench.runs)}
    for most in RESERVATIONS:
        took = [_timed(snapshot, CycleLimits(reservations=most), memo) for _ in range(TRIES)]
        found[f"plan_ms_{most}"], found[f"promises_{most}"] = min(took)
    return found


def _timed(snapshot: Snapshot, limits: CycleLimits, memo: Memo) -> tuple[float, int]:
    rng, begun = np.random.default_rng(0), time.process_time()
    made = plan(snapshot, policies(), now=HOUR, rng=rng, limits=limits, memo=memo)
    took_s = time.process_time() - begun
    assert not made.placements
    return round(1000 * took_s, 1), len(made.promises)


def _drawn(count: int) -> list[float]:
    return [LIMITS[n] for n in np.random.default_rng(3).integers(len(LIMITS), size=count)]


def _gang(number: int, nodes: int) -> PendingJob:
    size = max(2, nodes // 400 + number * nodes // 12_800)
    shape = TaskShape(100_000, 1024 * GIB, DeviceRequest("H100", DEVICES))
    request = GangRequest(
        (GroupRequest(size, size, (shape,)),), terms=RunTerms(LIMITS[number % len(LIMITS)])
    )
    return PendingJob(JobId(10**9 + number), 1, QUEUE, 0, submitted_at=number, request=request)


def main() -> None:
    """Measure every size, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    warm()
    sizes: dict[str, object] = {}
    for nodes in parser.parse_args().nodes:
        print(f"{nodes} nodes", file=sys.stderr, flush=True)
        sizes[str(nodes)] = measure(nodes)
    print(json.dumps(sizes))


if __name__ == "__main__":
    main()
