"""Measures the calendar of bookings: `python -m tools.bench_calendar`; one JSON object last.

A year of bookings over many clusters is built through the calendar itself, one by one, as the
service would; the last of them count. Then windows are looked for, and the calendar is read.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from atoll.core.engine.bookings.answers import Accepted, Booked, Placed, Query, Span
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.engine.bookings.warm import warm_calendar
from atoll.core.model.booking import OccurrenceId, Owners
from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName
from atoll.core.model.inventory import Cluster, Device, Node, NodeInventory
from atoll.core.model.plan import RunFacts, RunTerms, TaskPlacement
from atoll.core.model.reservation import (
    Amount,
    Preference,
    ReservationId,
    ReservationSpec,
    What,
    When,
    WholeDomains,
    WholeNodes,
)
from atoll.core.model.resources import DeviceGrant, DeviceRequest
from atoll.core.state.ledger import Holding
from atoll.core.state.world import World

GIB: Final = 1 << 30
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
YEAR: Final = 365 * DAY
KIND: Final = "H100"
DEVICES: Final = 8
RACK: Final = 16
LENGTHS: Final = (HOUR, 4 * HOUR, DAY, 3 * DAY)


def fleet(clusters: int, nodes: int, *, rng: random.Random, busy: float = 0.5) -> World:
    """Clusters of nodes with eight devices; a run of up to two days on a part of the nodes."""
    world = World()
    names = [ClusterName(f"c{number:03}") for number in range(clusters)]
    world.set_clusters([Cluster(name, levels=("rack",)) for name in names])
    devices = tuple(Device(index, KIND, 80 * GIB) for index in range(DEVICES))
    every = [
        Node(
            NodeId(1 + at * nodes + number),
            name,
            NodeInventory(
                f"n{number}",
                128_000,
                1024 * GIB,
                devices,
                domains=(("rack", f"r{number // RACK}"),),
            ),
        )
        for at, name in enumerate(names)
        for number in range(nodes)
    ]
    world.upsert_nodes(every)
    world.add_allocations([_run(node, rng) for node in every if rng.random() < busy])
    return world


def bookings(count: int, *, rng: random.Random, priority: int = 0) -> list[ReservationSpec]:
    """Bookings over a year: most of some devices, some of whole nodes, a few of racks."""
    return [_spec(number, rng, priority) for number in range(count)]


def measure(
    *, clusters: int = 100, nodes: int = 64, count: int = 10_000, timed: int = 1_000, seed: int = 0
) -> dict[str, float]:
    """Milliseconds by question; keys end in `_p50` and `_p99`."""
    rng = random.Random(seed)
    snapshot = fleet(clusters, nodes, rng=rng).look(0.0)
    warm_calendar(snapshot)
    calendar = Calendar(snapshot)
    specs = bookings(count, rng=rng)
    refused = sum(not book(calendar, number, spec) for number, spec in enumerate(specs[:-timed], 1))
    create = _timed(partial(book, calendar), enumerate(specs[-timed:], count))
    queries = ((query,) for query in [_query(rng) for _ in range(timed // 5)])
    find = _timed(lambda query: calendar.find(query, now=0.0), queries)
    weeks = ((rng.uniform(0.0, YEAR - 7 * DAY),) for _ in range(timed // 20))
    read = _timed(lambda at: calendar.availability(at, at + 7 * DAY, step=2 * HOUR), weeks)
    told = {"clusters": clusters, "nodes": clusters * nodes, "bookings": count, "refused": refused}
    return (
        told | _shown("create_ms", create) | _shown("find_ms", find) | _shown("calendar_ms", read)
    )


def book(calendar: Calendar, number: int, spec: ReservationSpec) -> bool:
    """Ask for one booking, and enter it when it is accepted."""
    start = spec.when.start_at or 0.0
    answer = calendar.accept(spec, [Span(start, start + spec.when.length_s)], now=0.0)
    if not isinstance(answer, Accepted):
        return False
    for placed in answer.placed:
        calendar.add(_booked(number, spec, placed))
    return True


def _booked(number: int, spec: ReservationSpec, placed: Placed) -> Booked:
    return Booked(
        OccurrenceId(number), ReservationId(number), spec.name, placed.start, placed.end,
        placed.parts, spec.what, spec.owners, priority=spec.priority,
    )  # fmt: skip


def _run(node: Node, rng: random.Random) -> Holding:
    grants = tuple(DeviceGrant(index, 100) for index in range(rng.choice((1, 2, 4, 8))))
    share = len(grants) / DEVICES
    task = TaskPlacement(
        0, 0, node.id, node.inventory.name, int(128_000 * share), int(1024 * GIB * share), grants
    )
    terms = RunTerms(
        time_limit_s=rng.choice((0.0, HOUR, DAY, 2 * DAY)),
        preemptible=rng.random() < 0.5,
        grace_s=60.0,
    )
    job = JobId(node.id)
    facts = RunFacts(job, started_at=-HOUR, terms=terms)
    return Holding(AttemptId(job << 16 | 1), QueueName("q"), node.cluster, (task,), facts)


def _spec(number: int, rng: random.Random, priority: int) -> ReservationSpec:
    when = When(rng.choice(LENGTHS), start_at=float(int(rng.uniform(0.0, YEAR))))
    owners = Owners(queues=(QueueName(f"q{number % 50}"),))
    return ReservationSpec(f"b{number}", _what(rng), when, owners, priority)


def _what(rng: random.Random) -> What:
    draw = rng.random()
    if draw < 0.05:
        return What(domains=WholeDomains("rack", 1))
    if draw < 0.2:
        return What(nodes=WholeNodes(rng.choice((1, 2, 4))))
    unit = DeviceRequest(KIND, rng.choice((1, 2, 4, 8)))
    return What(amounts=(Amount(unit, rng.choice((1, 2, 4, 8))),))


def _query(rng: random.Random) -> Query:
    start = rng.uniform(0.0, YEAR - 30 * DAY)
    large = What(amounts=(Amount(DeviceRequest(KIND, 8), rng.choice((8, 32, 56))),))
    preference = rng.choice((Preference.EARLY, Preference.EARLY, Preference.LATE))
    return Query(large, rng.choice(LENGTHS), start, start + 30 * DAY, 3, preference)


def _timed(call: Callable[..., object], arguments: Iterable[tuple[object, ...]]) -> list[float]:
    taken = []
    for each in list(arguments):
        began = time.perf_counter()
        call(*each)
        taken.append(1000 * (time.perf_counter() - began))
    return sorted(taken)


def _shown(name: str, taken: Sequence[float]) -> dict[str, float]:
    at = {"p50": len(taken) // 2, "p99": min(len(taken) - 1, len(taken) * 99 // 100)}
    return {f"{name}_{quantile}": round(taken[index], 3) for quantile, index in at.items()}


def main() -> None:
    """Measure with the sizes given."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("clusters", 100), ("nodes", 64), ("count", 10_000), ("timed", 1_000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--seed", type=int, default=0)
    print(json.dumps(measure(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
