"""Forecasts demand again and again: what the broker decides on, and what people are shown."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.burst.forecasting.forecaster import Forecaster
from atoll.burst.forecasting.storage import packed, unpacked
from atoll.burst.usecases import series as shown
from atoll.burst.usecases.booked import CPU, Bookings, Windows, no_bookings, nodes_in, windows_of
from atoll.burst.usecases.demand import ALL, demand_at, shares, sizes, steps_of
from atoll.burst.usecases.demand_table import Columns, of_queue
from atoll.burst.usecases.dependents import dependents, together, usual_lengths
from atoll.burst.usecases.follower import Follower
from atoll.burst.usecases.outlook import SEED, futures, series_of
from atoll.burst.usecases.series import Series, series_to_bytes
from atoll.burst.usecases.term import Term
from atoll.core.engine.burst.broker.ground import Outlook, aged
from atoll.core.engine.burst.demand.forecast import Forecast
from atoll.core.engine.burst.demand.series import DAY, STEP_S, Demand, Floats, Key
from atoll.core.model.burst import BurstPolicy, Offer
from atoll.core.model.ids import QueueName
from atoll.ports.store.burst import Capacity

KEPT_AS: Final = "forecast"
MOST_QUEUES: Final = 8
"""Series of single queues that are forecast, of each kind; more would take too long."""

Policies = Mapping[QueueName | None, BurstPolicy]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known at a time."""

    now: float
    columns: Columns
    """Of jobs that take devices, or would."""
    steps: int
    capacity: Mapping[str, float]
    """Devices by kind, without what is rented."""
    policies: Policies
    windows: Windows = field(default_factory=dict)
    """Of bookings to come, and of jobs that wait for others."""
    machine: float = 0.0
    """Processors of a machine without devices as it is rented; 0: none is on offer."""
    sizes: Mapping[Key, float] = field(default_factory=dict)
    """Devices of all jobs of each series; 0 where there are only windows."""


@dataclass(slots=True)
class Foresight:
    """Of one term. What forecasts were worth outlives it."""

    term: Term
    follower: Follower
    step_s: float = STEP_S
    bookings: Bookings = no_bookings
    horizon: int = DAY
    outlooks: tuple[Outlook, ...] = ()
    series: list[Series] = field(default_factory=list)
    made_at: float = 0.0
    """Of the outlooks, database time."""
    _forecaster: Forecaster | None = None
    _observed_at: float = 0.0

    async def look(self) -> list[Series]:
        """Forecast as of now; learn from what came, once every step."""
        forecaster = await self._restored()
        known = await self._known()
        full = known.now // self.step_s * self.step_s
        if full > self._observed_at:
            await asyncio.to_thread(self._observe, forecaster, known, full)
            await self._fit(forecaster, full)
            await self._put(KEPT_AS, await asyncio.to_thread(packed, forecaster))
            self._observed_at = full
        self.outlooks, self.series = await asyncio.to_thread(self._foresee, forecaster, known)
        self.made_at = known.now
        await self._put(shown.KEPT_AS, series_to_bytes(self.series))
        return self.series

    def ahead(self, now: float) -> tuple[Outlook, ...]:
        """What lies ahead by the last forecast, though it took its time or is long ago."""
        found = (aged(each, now - self.made_at) for each in self.outlooks)
        return tuple(each for each in found if each is not None)

    async def _restored(self) -> Forecaster:
        if self._forecaster is None:
            kept = await self.term.books.store.memory(KEPT_AS)
            self._forecaster = await asyncio.to_thread(_unpacked, kept, self.horizon)
        return self._forecaster

    async def _known(self) -> Known:
        store = self.term.books.store
        now = await self.term.now()
        table = await self.follower.follow(store, now=now)
        columns, related = table.columns(), table.related()
        kept = await self.bookings()
        booked = windows_of(kept, await store.node_parts(nodes_in(kept)), now=now)
        capacity = _devices(await store.capacities())
        capacity[CPU] = await store.cores()
        policies = {each.queue: each for each in await store.policies()}
        machine = machine_of(await store.offers())

        def known() -> Known:
            kind = usual_kind(capacity)
            comes = dependents(related, usual_lengths(columns), now=now, usual_kind=kind)
            return known_of(
                columns,
                together(booked, comes),
                capacity=capacity,
                policies=policies,
                now=now,
                step_s=self.step_s,
                machine=machine,
            )

        return await asyncio.to_thread(known)

    async def _fit(self, forecaster: Forecaster, at: float) -> None:
        """Seconds of work, beside the loop."""
        at_s = at * STEP_S / self.step_s
        if forecaster.is_due(at_s):
            lesson = forecaster.lesson(at_s)
            forecaster.use(await asyncio.to_thread(lesson.fit), lesson)

    async def _put(self, name: str, content: bytes) -> None:
        await self.term.write(lambda tx: tx.put_memory(name, content), quietly=True)

    def _demands(self, known: Known, at: float) -> list[Demand]:
        steps = max(1, known.steps - int((known.now - at) // self.step_s))
        return [
            demand_at(
                key,
                of_queue(known.columns, key.queue, key.kind),
                at,
                steps=steps,
                step_s=self.step_s,
                windows=known.windows.get(key, ()),
            )
            for key in chosen(known)
        ]

    def _observe(self, forecaster: Forecaster, known: Known, at: float) -> None:
        demands = self._demands(known, at)
        forecaster.observe(demands)
        # A new leader may look at an hour that the old one has seen.
        kept = {(each.key, each.at_s) for each in forecaster.memory.open}
        new = [each for each in demands if (each.key, each.at_s) not in kept]
        forecaster.keep([forecaster.forecast(each) for each in new])

    def _foresee(
        self, forecaster: Forecaster, known: Known
    ) -> tuple[tuple[Outlook, ...], list[Series]]:
        found = [(each, forecaster.forecast(each)) for each in self._demands(known, known.now)]
        series = [
            series_of(
                demand,
                forecast,
                forecaster,
                capacity=known.capacity.get(demand.key.kind, 0.0),
                step_s=self.step_s,
            )
            for demand, forecast in found
        ]
        together = [(d, f) for d, f in found if d.key.queue == ALL]
        outlooks = [each for d, f in together for each in self._outlooks(known, d, f)]
        return tuple(outlooks), series

    def _outlooks(self, known: Known, demand: Demand, forecast: Forecast) -> list[Outlook]:
        """Who pays: everybody, if all together may rent; else each queue that may, for its part."""
        kind = demand.key.kind
        excess = futures(demand, forecast) - known.capacity.get(kind, 0.0)
        if kind == CPU:
            if not known.machine:
                return []
            # The broker counts machines without devices, and knows them by no kind.
            excess = excess / known.machine
        rented, payers = "" if kind == CPU else kind, payers_of(known.policies)
        if None in payers:
            return [Outlook(rented, None, self.step_s, excess)]
        part = shares(known.columns, kind, now=known.now)
        return [
            Outlook(rented, queue, self.step_s, _part(excess, part.get(queue or ALL, 0.0)))
            for queue in payers
        ]


def known_of(
    columns: Columns,
    windows: Windows,
    *,
    capacity: Mapping[str, float],
    policies: Policies,
    now: float,
    step_s: float,
    machine: float = 0.0,
) -> Known:
    """Of all jobs, in whatever order they were written, and what lies ahead for sure."""
    room = {**capacity, CPU: max(0.0, capacity.get(CPU, 0.0) - beside_devices(columns))}
    counted = columns.counted(usual_kind(capacity), CPU)
    wanting = counted.where(counted.wanting(now)).by_number()
    steps = steps_of(columns, now, step_s)
    every = {**dict.fromkeys(windows, 0.0), **sizes(wanting)}
    return Known(now, wanting, steps, room, policies, windows, machine, every)


def usual_kind(capacity: Mapping[str, float]) -> str:
    """The kind of devices that there are most of, for those who take any; empty: there are none."""
    kinds = (kind for kind in capacity if kind not in {"", CPU})
    return max(kinds, key=lambda kind: (capacity[kind], kind), default="")


def machine_of(offers: Iterable[Offer]) -> float:
    """Processors of the cheapest machine without devices; 0: none is on offer."""
    there = (each for each in offers if not each.kind and each.available and each.cpu_milli)
    cheapest = min(there, key=lambda each: (each.price / each.units, each.key), default=None)
    return cheapest.cpu_milli / 1000 if cheapest is not None else 0.0


def beside_devices(columns: Columns) -> float:
    """Processors that jobs with devices have now."""
    rows = columns.rows
    runs = (rows["started"] > 0) & (rows["ended"] == 0) & (rows["devices"] > 0)
    return float(rows["cores"][runs].sum())


def chosen(known: Known) -> list[Key]:
    """Series that are forecast: of all together, of queues with a policy, and of the largest."""
    found: list[Key] = []
    for kind in sorted({key.kind for key in known.sizes}):
        queues = [key for key in known.sizes if key.kind == kind and key.queue != ALL]
        queues.sort(key=lambda key: (key.queue not in known.policies, -known.sizes[key], key))
        found += [Key(ALL, kind), *queues[:MOST_QUEUES]]
    return found


def payers_of(policies: Policies) -> list[QueueName | None]:
    """All together, or the topmost queues whose policies allow renting."""
    if None in policies and policies[None].allowed:
        return [None]
    allowed = sorted(queue for queue, each in policies.items() if queue and each.allowed)
    return [q for q in allowed if not any(q.startswith(f"{other}.") for other in allowed)]


def _part(excess: Floats, share: float) -> Floats:
    return excess * share


def _devices(capacities: Sequence[Capacity]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in capacities:
        if not each.rented:
            found[each.kind] = found.get(each.kind, 0.0) + each.devices
    return found


def _unpacked(kept: bytes | None, horizon: int) -> Forecaster:
    """What was kept, or a new one when that cannot be read."""
    if kept:
        try:
            return unpacked(kept, seed=SEED, horizon=horizon)
        except (ValueError, KeyError, OSError, AttributeError):
            # AttributeError: trees of a library that is not installed here.
            pass
    return Forecaster(SEED, horizon=horizon)
