"""Measures the reservation service's own way to book, over the memory store.

`python -m tools.bench_booking`; one JSON object last. Bookings over a year on many clusters go
through the use case one by one, transaction and all; the last of them count.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from dataclasses import replace
from typing import Final

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.adapters.memory.streams import MemoryHints
from atoll.adapters.system import SystemIds
from atoll.core.model.actor import Actor
from atoll.core.model.booking import Owners
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import ClusterName, QueueName, Tenant
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.reservation import ReservationSpec
from atoll.ports.store.dispatch import InventoryDelta, SessionClaim
from atoll.reservation.settings import ReservationSettings
from atoll.reservation.usecases.create import Booker, Draft
from atoll.reservation.wiring import Bookings
from tools.bench_calendar import DEVICES, GIB, HOUR, KIND, RACK, YEAR, bookings

WHO: Final = Actor("bench", Tenant("default"))
OWNERS: Final = Owners(queues=(QueueName("default"),))
SAY_EVERY: Final = 500


async def measure(*, clusters: int, nodes: int, count: int, timed: int) -> dict[str, float]:
    """Milliseconds of a create; what is refused takes its time, too."""
    clock = ManualClock()
    database = MemoryDatabase()
    store = MemoryStore(database, clock)
    for number in range(clusters):
        await _register(store, ClusterName(f"c{number:03}"), nodes)
    service = Bookings(
        store.reservation,
        MemoryStore(database, clock).placement,
        hints=MemoryHints(),
        settings=ReservationSettings(),
        clock=clock,
        ids=SystemIds(),
    )
    await service.replica.follow()
    taken: list[float] = []
    refused = 0
    for number, spec in enumerate(bookings(count, rng=random.Random(0)), 1):
        begin = time.perf_counter()
        refused += not await _book(service.use_cases.booker, _from(spec, clock.now()))
        taken.append(1000 * (time.perf_counter() - begin))
        if number % SAY_EVERY == 0:
            print(f"{number} asked for, {refused} refused", file=sys.stderr, flush=True)
    last = sorted(taken[-timed:])
    await service.close()
    await store.close()
    return {
        "create_ms_p50": round(last[len(last) // 2], 3),
        "create_ms_p99": round(last[len(last) * 99 // 100], 3),
        "bookings": count - refused,
        "refused": refused,
    }


async def _register(store: MemoryStore, name: ClusterName, nodes: int) -> None:
    row = await store.dispatch.open_session(_claim(name))
    devices = tuple(Device(index, KIND, 80 * GIB) for index in range(DEVICES))
    inventory = tuple(
        NodeInventory(
            f"n{number}",
            128_000,
            1024 * GIB,
            devices,
            domains=(("rack", f"r{number // RACK}"),),
        )
        for number in range(nodes)
    )
    delta = InventoryDelta(name, row.cluster.session_epoch, 1, full=True, nodes=inventory)
    if not await store.dispatch.put_inventory(delta):
        raise AssertionError(f"{name} is not registered")


async def _book(booker: Booker, spec: ReservationSpec) -> bool:
    try:
        await booker.create(WHO, Draft(spec))
    except DomainError:
        return False
    return True


def _from(spec: ReservationSpec, now: float) -> ReservationSpec:
    start = now + HOUR + (spec.when.start_at or 0.0)
    return replace(spec, when=replace(spec.when, start_at=start), owners=OWNERS)


def _claim(name: ClusterName) -> SessionClaim:
    return SessionClaim(
        cluster=name,
        instance="bench",
        holder="here:1",
        backend="simulated",
        can_guard=True,
        levels=("rack",),
        labels=(),
        lease_s=YEAR,
        applied_seq=0,
        last_report=0,
        fresh_journal=False,
    )


def main() -> None:
    """Measure with the sizes given."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("clusters", 100), ("nodes", 64), ("count", 10_000), ("timed", 1_000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    print(json.dumps(asyncio.run(measure(**vars(parser.parse_args())))))


if __name__ == "__main__":
    main()
