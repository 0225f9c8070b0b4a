"""Measures the reservation service's own way to book, over the memory store or PostgreSQL.

`python -m tools.bench_booking [--store postgres]`; one JSON object last. Bookings over a year on
many clusters go through the use case one by one, transaction and all; the last of them count.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.memory.store import MemoryDatabase, MemoryStore
from atoll.adapters.memory.streams import MemoryHints
from atoll.adapters.postgres.migrate import upgrade
from atoll.adapters.postgres.store import PostgresStore
from atoll.adapters.system import SystemClock, SystemIds
from atoll.core.model.actor import Actor
from atoll.core.model.booking import Owners
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import ClusterName, QueueName, Tenant
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.reservation import ReservationSpec
from atoll.ports.clock import Clock
from atoll.ports.store.dispatch import InventoryDelta, SessionClaim
from atoll.ports.store.placement import PlacementStore
from atoll.reservation.settings import ReservationSettings
from atoll.reservation.usecases.create import Booker, Draft
from atoll.reservation.wiring import Bookings
from atoll.runtime.servers.postgres import PostgresServer
from tools.bench_calendar import DEVICES, GIB, HOUR, KIND, RACK, YEAR, bookings

WHO: Final = Actor("bench", Tenant("default"))
OWNERS: Final = Owners(queues=(QueueName("default"),))
SAY_EVERY: Final = 500


Store = MemoryStore | PostgresStore


class Stores(NamedTuple):
    """What is measured over."""

    store: Store
    follower: PlacementStore
    clock: Clock


@asynccontextmanager
async def memory() -> AsyncIterator[Stores]:
    """A store that forgets, and the one of its follower."""
    clock, database = ManualClock(), MemoryDatabase()
    store = MemoryStore(database, clock)
    yield Stores(store, MemoryStore(database, clock).placement, clock)
    await store.close()


@asynccontextmanager
async def postgres() -> AsyncIterator[Stores]:
    """A PostgreSQL of its own, durable as any."""
    with TemporaryDirectory() as folder:
        server = PostgresServer(Path(folder))
        await server.start()
        await asyncio.to_thread(upgrade, server.dsn)
        store = PostgresStore.open(server.dsn, ids=SystemIds(), application="bench")
        yield Stores(store, store.placement, SystemClock())
        await store.close()
        await server.stop()


STORES: Final = {"memory": memory, "postgres": postgres}


async def measure(
    *, store: str, clusters: int, nodes: int, count: int, timed: int
) -> dict[str, float]:
    """Milliseconds of a create; what is refused takes its time, too."""
    async with STORES[store]() as stores:
        return await _measured(stores, clusters, nodes, count=count, timed=timed)


async def _measured(
    stores: Stores, clusters: int, nodes: int, *, count: int, timed: int
) -> dict[str, float]:
    store, clock = stores.store, stores.clock
    for number in range(clusters):
        await _register(store, ClusterName(f"c{number:03}"), nodes)
    service = Bookings(
        store.reservation,
        stores.follower,
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
    return {
        "create_ms_p50": round(last[len(last) // 2], 3),
        "create_ms_p99": round(last[len(last) * 99 // 100], 3),
        "bookings": count - refused,
        "refused": refused,
    }


async def _register(store: Store, name: ClusterName, nodes: int) -> None:
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
    parser.add_argument("--store", choices=sorted(STORES), default="memory")
    for name, value in (("clusters", 100), ("nodes", 64), ("count", 10_000), ("timed", 1_000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    print(json.dumps(asyncio.run(measure(**vars(parser.parse_args())))))


if __name__ == "__main__":
    main()
