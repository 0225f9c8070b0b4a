"""Bookings for a simulation: random windows that the calendar accepts, and what owners run there.

The machine is nodes of one processor each, which is a device to the scheduler: a job of p
processors is a gang of p tasks, and a booking has whole nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from numpy.random import Generator

from atoll.core.engine.bookings.answers import Accepted, Span, booked_of
from atoll.core.engine.bookings.calendar import Calendar
from atoll.core.model.booking import OccurrenceId, Owners
from atoll.core.model.ids import QueueName, Tenant
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.reservation import (
    Occurrence,
    Reservation,
    ReservationId,
    ReservationSpec,
    What,
    When,
    WholeNodes,
)
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import Checkpoint, JobSpec, TaskGroup
from atoll.core.state.world import World
from atoll.ports.store.bookings import Kept
from atoll.sim.fleet import Fleet, fleet
from atoll.sim.service.clock import START
from atoll.sim.work import Work

OWNERS: Final = "owners"
KIND: Final = "processor"
CPU_MILLI: Final = 1000
MEMORY: Final = 1 << 30
HOUR_S: Final = 3600.0
LENGTHS_H: Final = (1, 2, 4, 8, 12)
PARTS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Of the machine, by booking."""
USES: Final = (0.0, 0.5, 1.0)
"""Parts of its window that an owner's job runs, from its start."""
AHEAD_S: Final = HOUR_S
"""An owner's job is submitted so long before its window."""
ROOM_S: Final = 300.0
"""Left at the end of a window: a run that lasts as long as it does would be told to stop."""
TRIES: Final = 20
"""Refusals on end, after which the machine is as booked as it can be."""


class Full(Exception):
    """The calendar refuses a window."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One booking, and the part of it that its owner uses."""

    kept: Kept
    processors: int
    used: float

    @property
    def start(self) -> float:
        """Seconds from the beginning of the simulation."""
        return self.kept.occurrence.start_at - START

    @property
    def length_s(self) -> float:
        """From its start to its end."""
        return self.kept.occurrence.end_at - self.kept.occurrence.start_at

    @property
    def held_s(self) -> float:
        """Processor-seconds."""
        return self.processors * self.length_s


def machine_of(processors: int) -> Fleet:
    """One cluster."""
    processor = Device(0, KIND, MEMORY)
    nodes = [
        NodeInventory(f"n{number:04}", CPU_MILLI, MEMORY, devices=(processor,))
        for number in range(processors)
    ]
    return fleet({"machine": nodes})


def draw(machine: Fleet, *, share: float, span_s: float, rng: Generator) -> list[Draw]:
    """Random windows until a share of the capacity of `span_s` is booked, by start.

    Each has its place from the calendar; what is refused is drawn anew.
    """
    calendar, nodes = _calendar(machine), len(machine.nodes)
    missing = share * span_s * nodes
    found: list[Draw] = []
    refused = 0
    while missing > 0 and refused < TRIES:
        try:
            found.append(_drawn(calendar, len(found) + 1, nodes=nodes, span_s=span_s, rng=rng))
        except Full:
            refused += 1
            continue
        missing -= found[-1].held_s
        refused = 0
    return sorted(found, key=lambda each: (each.start, each.kept.occurrence.id))


def lent(draws: Sequence[Draw], *, lend: bool) -> list[Kept]:
    """The bookings; `lend`: what no owner uses may run others' preemptible jobs."""
    return [_with_lending(each.kept, lend=lend) for each in draws]


def owners_works(draws: Sequence[Draw], *, inside: bool) -> dict[OccurrenceId, Work]:
    """What owners run, by booking; `inside`: in their windows only."""
    return {
        each.kept.occurrence.id: _owners_work(each, inside=inside) for each in draws if each.used
    }


def job(
    name: str, queue: str, processors: int, *, limit_s: float, interval_s: float, **more: bool | str
) -> JobSpec:
    """A gang of one task a processor; `interval_s` between two checkpoints, 0: there are none."""
    shape = TaskShape(0, 0, DeviceRequest(KIND, 1))
    group = TaskGroup("main", processors, processors, shapes=(shape,), run="true")
    checkpoint = Checkpoint(interval_s=interval_s) if interval_s else None
    spec = JobSpec(name, queue, (group,), time_limit_s=limit_s, checkpoint=checkpoint)
    return replace(spec, **more)  # type: ignore[arg-type]


def _calendar(machine: Fleet) -> Calendar:
    world = World()
    world.set_clusters(machine.clusters)
    world.upsert_nodes(machine.nodes)
    return Calendar(world.look(START))


def _drawn(calendar: Calendar, number: int, *, nodes: int, span_s: float, rng: Generator) -> Draw:
    """Raises Full when it cannot be had."""
    processors = max(1, round(nodes * float(rng.choice(PARTS))))
    length_s = min(HOUR_S * int(rng.choice(LENGTHS_H)), span_s)
    start = START + float(int(rng.uniform(0.0, max(1.0, span_s - length_s))))
    used = float(rng.choice(USES))
    reservation = _reservation(number, processors, start=start, length_s=length_s)
    answer = calendar.accept(reservation.spec, [Span(start, start + length_s)], now=START)
    if not isinstance(answer, Accepted):
        raise Full
    occurrence = Occurrence(
        OccurrenceId(number),
        reservation.id,
        reservation.spec.name,
        start,
        start + length_s,
        parts=answer.placed[0].parts,
    )
    calendar.add(booked_of(reservation, occurrence, running=False))
    return Draw(Kept(reservation, occurrence), processors, used)


def _reservation(number: int, processors: int, *, start: float, length_s: float) -> Reservation:
    spec = ReservationSpec(
        f"b{number}",
        What(nodes=WholeNodes(processors)),
        When(length_s, start_at=start),
        Owners(queues=(QueueName(OWNERS),)),
        pinned=True,
    )
    return Reservation(
        ReservationId(number), spec, Tenant("default"), created_by=OWNERS, created_at=START
    )


def _with_lending(kept: Kept, *, lend: bool) -> Kept:
    spec = replace(kept.reservation.spec, lend=lend)
    return replace(kept, reservation=replace(kept.reservation, spec=spec))


def _owners_work(drawn: Draw, *, inside: bool) -> Work:
    name = drawn.kept.reservation.spec.name
    spec = job(
        name, OWNERS, drawn.processors, limit_s=drawn.length_s, interval_s=0.0,
        reservation=name if inside else "",
    )  # fmt: skip
    run_s = min(drawn.used * drawn.length_s, drawn.length_s - ROOM_S)
    return Work(max(0.0, drawn.start - AHEAD_S), spec, max(1.0, run_s))
