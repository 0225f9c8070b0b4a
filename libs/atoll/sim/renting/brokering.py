"""The product's broker in the simulation: it is told what the service would tell it, no more."""

from dataclasses import dataclass, field, replace
from typing import Final

from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Ground, Options, Use, type_key
from atoll.core.engine.burst.broker.memory import Memory
from atoll.core.engine.burst.broker.retry import setbacks_of
from atoll.core.engine.burst.broker.rooms import room_of
from atoll.core.engine.burst.demand.series import STEP_S
from atoll.core.model.burst import (
    BurstPolicy,
    Instance,
    InstanceId,
    InstanceState,
    Offer,
)
from atoll.core.model.burst_wants import Ask, Want
from atoll.core.model.ids import JobId, QueueName
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.sim.renting.etas import Etas, Line
from atoll.sim.renting.machines import Machine
from atoll.sim.renting.market import KIND
from atoll.sim.renting.outlooks import Outlooks
from atoll.sim.renting.world import RESTART_S, World, nominees

Start = tuple[float, float]
"""(p50, p90)."""
QUEUE: Final = QueueName("default")
IDLE_KEPT: Final = 200
"""Past idle times of each type that are told."""
LATELY: Final = 300
"""Instances that are looked at for what failed lately."""


@dataclass(slots=True)
class Broker:
    """The rule; `policy` and `options` are all that can be set."""

    policy: BurstPolicy
    outlooks: Outlooks | None = None
    options: Options = field(default_factory=Options)
    etas: Etas = field(default_factory=Etas)
    memory: Memory = field(default_factory=Memory)
    _waited: set[int] = field(default_factory=set)
    _came: int = 0

    def hour(self, world: World) -> None:
        """A full hour."""
        if self.outlooks is not None:
            self.outlooks.look(world, int(world.now // STEP_S))

    def look(self, world: World) -> None:
        """Decide once, and do it."""
        ground = self._ground(world)
        deeds = decide(ground)
        self.memory = deeds.memory
        for drain in deeds.drains:
            world.drain(world.machines[drain.instance], drain.cause, drain.stop_at)
        for rent in deeds.rents:
            world.rent(rent.offer, rent.jobs, rent.why)

    def _ground(self, world: World) -> Ground:
        wants = self._wants(world)
        came, self._came = world.came - self._came, world.came
        budget = self.policy.budget
        room = room_of(budget, rate=world.purse.rate, month=0, end_s=self.options.end_s)
        return Ground(
            world.now,
            wants=wants,
            instances=tuple(map(_instance, world.machines.values())),
            uses={InstanceId(n): _use(world, each) for n, each in world.machines.items()},
            offers=offers_now(world),
            policies={None: self.policy},
            budgets={None: room},
            outlooks=self.outlooks.now(world) if self.outlooks is not None else (),
            idle_s=_idle_s(world),
            setbacks=setbacks_of(map(_instance, world.ended[-LATELY:]), now=world.now),
            spare={} if world.waiting else {KIND: world.free},
            came=came,
            memory=self.memory,
            options=self.options,
        )

    def _wants(self, world: World) -> tuple[Want, ...]:
        self._learn(world)
        held = dict(nominees(world))
        line = [job for job in world.waiting if job not in held]
        starts = self.etas.look(_line(world, line), now=world.now)
        return tuple(
            _want(world, job, held=held.get(job), start=starts.get(job)) for job in world.waiting
        )

    def _learn(self, world: World) -> None:
        """What became of those that waited at the last look."""
        for job in self._waited.difference(world.waiting):
            if job in world.rented:
                self.etas.rented(job)
            else:
                self.etas.started(job, now=world.started_at[job])
        self._waited = set(world.waiting)


def offers_now(world: World) -> tuple[Offer, ...]:
    """With what is to be had now."""
    return tuple(
        replace(each, available=world.supply.is_up(each, world.now)) for each in world.offers
    )


def _line(world: World, jobs: list[int]) -> Line:
    devices = [world.devices[job] for job in jobs]
    expected = [world.believed_s[job] for job in jobs]
    return Line(jobs, devices, expected, world.free, world.expected_ends())


def _want(world: World, job: int, *, held: Machine | None, start: Start | None) -> Want:
    devices = world.devices[job]
    largest = max(each.devices for each in world.offers)
    ask = Ask(KIND, devices * BLOCKS_PER_DEVICE, 1000 * devices, 1 << 30)
    middle, late = start or (0.0, 0.0)
    return Want(
        JobId(job),
        QUEUE,
        (ask,) if devices <= largest else (),
        submitted_at=world.work.submitted_s[job].item(),
        work_s=world.believed_s[job],
        local_p50_at=middle,
        local_p90_at=late,
        overhead_s=RESTART_S,
        placed_on=InstanceId(held.number) if held else None,
        as_of=world.now,
    )


def _instance(machine: Machine) -> Instance:
    return Instance(
        InstanceId(machine.number),
        str(machine.number),
        machine.offer,
        machine.state,
        machine.asked_at,
        jobs=tuple(map(JobId, machine.jobs)),
        created_at=machine.asked_at,
        ready_at=machine.ready_at,
        idle_since=machine.idle_since,
        ended_at=machine.ended_at,
        cause=machine.cause,
    )


def _use(world: World, machine: Machine) -> Use:
    booting = machine.state is InstanceState.BOOTING
    held = sum(job in world.waiting for job in machine.jobs) if booting else 0
    left = [world.believed_left_s(job, since) for job, since in machine.live.items()]
    return Use(
        not booting,
        len(machine.live),
        held,
        devices=sum(world.devices[job] for job in machine.live),
        left_s=max(left, default=0.0),
    )


def _idle_s(world: World) -> dict[str, tuple[float, ...]]:
    found: dict[str, tuple[float, ...]] = {}
    for offer in world.offers:
        found[type_key(offer)] = tuple(world.idle_s.get(type_key(offer), ())[-IDLE_KEPT:])
    return found
