"""Measures the core alone: cycles of freeze, plan, verify and taking note, without any I/O.

Prints one line per scenario and, last, one JSON object with all numbers.
"""

import argparse
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count

import numpy as np

from atoll.core.engine.cycle import CycleLimits, plan
from atoll.core.engine.kernels import warm
from atoll.core.engine.memo import Memo
from atoll.core.engine.verify import verify
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName
from atoll.core.model.inventory import Cluster, Device, Node, NodeInventory
from atoll.core.model.plan import GangPlacement, GangRequest, GroupRequest, PendingJob
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.policies.registry import policies
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World

GIB = 1 << 30
QUEUE = QueueName("bench")
NODES_PER_RACK = 32


@dataclass(frozen=True, slots=True)
class Result:
    """One scenario, measured."""

    scenario: str
    nodes: int
    shapes: int
    placements: int
    tasks: int
    cycles: int
    seconds: float
    placements_per_s: float
    plan_seconds: float
    plan_placements_per_s: float
    slowest_cycle_s: float
    cpu_seconds: float
    """Of this process: what the wall clock would say on a machine with nothing else to do."""
    cpu_placements_per_s: float


class Bench:
    """A world that is driven as the leader drives it."""

    def __init__(self, nodes: int, clusters: int) -> None:
        self.world = World()
        names = [ClusterName(f"c{i}") for i in range(clusters)]
        self.world.set_clusters([Cluster(name) for name in names])
        self.world.upsert_nodes([
            node(number, names[number * clusters // (nodes + 1)]) for number in range(1, nodes + 1)
        ])
        self.nodes = nodes
        self.memo = Memo()
        self.held: list[AttemptId] = []
        self.rng = np.random.default_rng(7)
        self._ids = count(1)

    def submit(self, requests: list[GangRequest], jobs: int) -> None:
        """Queue jobs of the requests in turn."""
        pending = []
        for _ in range(jobs):
            number = next(self._ids)
            request = requests[number % len(requests)]
            pending.append(
                PendingJob(JobId(number), 1, QUEUE, 0, submitted_at=float(number), request=request)
            )
        self.world.upsert_pending(pending)

    def cycle(self, limit: int) -> tuple[tuple[GangPlacement, ...], float, float]:
        """One cycle: what was placed, its seconds, and those of the plan alone."""
        start = time.perf_counter()
        snapshot = self.world.freeze(1.0, limit)
        frozen = time.perf_counter()
        made = plan(
            snapshot,
            policies(),
            now=1.0,
            rng=self.rng,
            limits=CycleLimits(max_placements=limit),
            memo=self.memo,
        )
        planned = time.perf_counter()
        verify(made, self.world.ledger)
        placed = made.placements
        self.world.add_allocations([
            Holding(p.attempt, p.queue, p.cluster, p.tasks) for p in placed
        ])
        self.world.remove_pending([p.job for p in placed])
        self.world.note_waiting(snapshot, made)
        self.held.extend(p.attempt for p in placed)
        return placed, time.perf_counter() - start, planned - frozen

    def release(self, share: float) -> None:
        """End a random share of what runs."""
        order = self.rng.permutation(len(self.held))
        cut = int(len(order) * share)
        self.world.end_allocations([self.held[i] for i in order[:cut].tolist()])
        self.held = [self.held[i] for i in order[cut:].tolist()]

    def measure(self, name: str, *, shapes: int, cycles: int, limit: int) -> Result:
        """Run cycles until nothing is placed, at most so many."""
        placements = tasks = ran = 0
        cpu = time.process_time()
        total = planning = slowest = 0.0
        for _ in range(cycles):
            placed, seconds, planned = self.cycle(limit)
            if not placed:
                break
            ran += 1
            placements += len(placed)
            tasks += sum(len(p.tasks) for p in placed)
            total, planning, slowest = total + seconds, planning + planned, max(slowest, seconds)
        cpu = time.process_time() - cpu
        return Result(
            cpu_seconds=round(cpu, 3),
            cpu_placements_per_s=round(placements / cpu),
            scenario=name,
            nodes=self.nodes,
            shapes=shapes,
            placements=placements,
            tasks=tasks,
            cycles=ran,
            seconds=round(total, 3),
            placements_per_s=round(placements / total) if total else 0,
            plan_seconds=round(planning, 3),
            plan_placements_per_s=round(placements / planning) if planning else 0,
            slowest_cycle_s=round(slowest, 4),
        )


def one_job_ms(nodes: int) -> dict[str, float]:
    """CPU milliseconds of a cycle for one new job on a half-full world, by percentile."""
    bench = Bench(nodes, clusters=4)
    requests = mixed(50)
    bench.submit(requests, nodes)
    bench.measure("", shapes=50, cycles=200, limit=4096)
    times = []
    for i in range(60):
        bench.submit(requests[i % 50 :][:1], 1)
        start = time.process_time()
        placed, _, _ = bench.cycle(4096)
        times.append((time.process_time() - start) * 1000)
        assert len(placed) == 1
    times.sort()
    return {"p50": round(times[30], 2), "p95": round(times[57], 2)}


def node(number: int, cluster: ClusterName) -> Node:
    """A node with 8 H100, 128 cores, 2 TiB."""
    devices = tuple(Device(i, "H100", 80 * GIB) for i in range(8))
    rack = number // NODES_PER_RACK
    inventory = NodeInventory(
        f"n{number}",
        128_000,
        2048 * GIB,
        devices,
        domains=(("block", f"b{rack // 16}"), ("rack", f"r{rack}")),
    )
    return Node(NodeId(number), cluster, inventory)


def single(cpus: int, memory_gib: int, device: DeviceRequest | None) -> GangRequest:
    """One task."""
    return GangRequest((GroupRequest(1, 1, (TaskShape(cpus * 1000, memory_gib * GIB, device),)),))


def mixed(shapes: int) -> list[GangRequest]:
    """Shares, one, two, four and eight devices, with `shapes` different CPU counts."""
    devices = [
        DeviceRequest("H100", 1, blocks=25),
        DeviceRequest("H100", 1),
        DeviceRequest("H100", 2),
        DeviceRequest("H100", 4),
        DeviceRequest("H100", 8),
    ]
    return [single(1 + i % 16, 4 + i, devices[i % len(devices)]) for i in range(shapes)]


def gangs(size: int) -> list[GangRequest]:
    """Gangs of whole nodes."""
    shape = TaskShape(64_000, 512 * GIB, DeviceRequest("H100", 8))
    return [GangRequest((GroupRequest(size, size, (shape,)),))]


def scenarios(nodes: int, *, limit: int) -> Iterator[Result]:
    """All scenarios on so many nodes."""
    bench = Bench(nodes, clusters=4)
    bench.submit(mixed(1)[:1] + mixed(2)[1:], nodes * 4)
    yield bench.measure("two shapes, filling up", shapes=2, cycles=200, limit=limit)
    for shapes in (10, 50, 200):
        bench = Bench(nodes, clusters=4)
        bench.submit(mixed(shapes), nodes * 2)
        yield bench.measure(f"{shapes} shapes, filling up", shapes=shapes, cycles=200, limit=limit)
        bench.submit(mixed(shapes), nodes * 4)
        bench.measure("", shapes=shapes, cycles=200, limit=limit)
        bench.release(0.2)
        yield bench.measure(f"{shapes} shapes, nearly full", shapes=shapes, cycles=200, limit=limit)
    bench = Bench(nodes, clusters=4)
    bench.submit(gangs(8), nodes // 8)
    yield bench.measure("gangs of 8 whole nodes", shapes=1, cycles=200, limit=limit)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--limit", type=int, default=4096, help="placements per cycle")
    arguments = parser.parse_args()
    warm()
    results = []
    for result in scenarios(arguments.nodes, limit=arguments.limit):
        print(
            f"{result.scenario:28} {result.placements_per_s:7.0f} placements/s"
            f"  (by CPU time {result.cpu_placements_per_s:7.0f}/s)"
            f"  plan alone {result.plan_placements_per_s:7.0f}/s"
            f"  {result.placements} in {result.cycles} cycles, slowest {result.slowest_cycle_s} s"
        )
        results.append(asdict(result))
    latency = one_job_ms(arguments.nodes)
    print(f"one new job: a cycle takes {latency['p50']} ms of CPU, p95 {latency['p95']} ms")
    print(
        json.dumps({
            "placements_per_s": results[1]["placements_per_s"],
            "cpu_placements_per_s": results[1]["cpu_placements_per_s"],
            "one_job_cycle_cpu_ms": latency,
            "nodes": arguments.nodes,
            "devices": arguments.nodes * 8,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "scenarios": results,
        })
    )


if __name__ == "__main__":
    main()
