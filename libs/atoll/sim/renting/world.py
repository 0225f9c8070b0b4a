"""The cluster with its queue, and the instances beside it, on a virtual clock.

Jobs start in the order of their submits on the own cluster first, with EASY backfilling; what has
to wait goes to instances that are ready, cheapest first. Nothing here knows a rule.
"""

import heapq
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from atoll.core.engine.burst.broker.ground import type_key
from atoll.core.model.burst import EndCause, InstanceState, Offer
from atoll.sim.renting.easy import starting
from atoll.sim.renting.jobs import Work
from atoll.sim.renting.machines import GIVE_UP_S, GONE_S, Machine, Purse
from atoll.sim.renting.market import Supply, boot_of

STRETCH: Final = 1.5
"""A run that has outlived what was expected is expected to last so many times as long."""
RESTART_S: Final = 720.0
"""What an interruption costs: the restart, and the work since the last checkpoint."""
LIVE: Final = (InstanceState.READY, InstanceState.DRAINING)


@dataclass(slots=True)
class World:
    """All of it. Times are seconds from the start of the trace."""

    work: Work
    capacity: int
    offers: tuple[Offer, ...]
    supply: Supply
    purse: Purse
    seed: int
    now: float = 0.0
    free: int = 0
    waiting: list[int] = field(default_factory=list)
    """Jobs, in the order of their submits."""
    local: dict[int, float] = field(default_factory=dict)
    """Jobs that run on the own cluster, and since when."""
    where: dict[int, Machine] = field(default_factory=dict)
    """Jobs that run on an instance."""
    machines: dict[int, Machine] = field(default_factory=dict)
    """By number; not ended."""
    ended: list[Machine] = field(default_factory=list)
    asked: int = 0
    idle_s: dict[str, list[float]] = field(default_factory=dict)
    """Idle times that ended in use, by type."""
    came: int = 0
    """Jobs that were submitted."""
    rented: set[int] = field(default_factory=set)
    """Jobs that have run on an instance."""

    left_s: list[float] = field(init=False)
    believed_s: list[float] = field(init=False)
    """What is left by what its user believes."""
    devices: list[int] = field(init=False)
    since: list[float] = field(init=False)
    """In the line."""
    queued_s: list[float] = field(init=False)
    """In the line, after stops too."""
    waited_s: list[float] = field(init=False)
    """Until the first start."""
    stopped: int = 0
    """Times that a job was stopped and had to start anew."""
    started_at: list[float] = field(init=False)
    """The last time."""
    over: list[bool] = field(init=False)
    _ran_s: list[float] = field(init=False)
    """Up to the last stop."""
    _stamp: list[int] = field(init=False)
    """Times that a job left an instance."""
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _made: int = 0

    def __post_init__(self) -> None:
        self.free = self.capacity
        self.left_s = self.work.run_s.tolist()
        self.believed_s = self.work.expected_s.tolist()
        self.devices = self.work.devices.tolist()
        self.since = self.work.submitted_s.tolist()
        count = len(self.since)
        self.waited_s, self.queued_s = [-1.0] * count, [0.0] * count
        self.started_at = [0.0] * count
        self._stamp, self._ran_s = [0] * count, [0.0] * count
        self.over = [False] * count

    # What happens -----------------------------------------------------------------------------

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Have something happen."""
        self._made += 1
        heapq.heappush(self._events, (when, self._made, what))

    def next_at(self) -> float:
        """When something happens next."""
        return self._events[0][0] if self._events else np.inf

    def step(self, until: float) -> None:
        """What happens up to then, and what starts because of it."""
        while self._events and self._events[0][0] <= until:
            self.now = self._events[0][0]
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            self.place()
        self.now = until

    def arrive(self, job: int) -> None:
        """It was submitted."""
        self.waiting.append(job)
        self.came += 1

    # Placing ----------------------------------------------------------------------------------

    def place(self) -> None:
        """Start what can start."""
        if self.waiting and self.free > 0:
            line = [(job, self.devices[job], self.believed_s[job]) for job in self.waiting]
            ends = self.expected_ends
            for job in list(starting(line, free=self.free, now=self.now, ends=ends)):
                self._start_here(job)
        if self.waiting and any(each.free > 0 for each in self.machines.values()):
            self._place_rented()
        for each in self.machines.values():
            self._note_idle(each)

    def expected_ends(self) -> list[tuple[float, int]]:
        """(when, devices) of what runs on the own cluster, by what is expected; soonest first."""
        found = []
        for job, start in self.local.items():
            left_s = self.believed_left_s(job, start)
            found.append((self.now + max(1.0, left_s), self.devices[job]))
        return sorted(found)

    def ran_s(self, job: int) -> float:
        """How long it has run."""
        machine = self.where.get(job)
        began = machine.live[job] if machine is not None else self.local.get(job)
        return self._ran_s[job] + (self.now - began if began is not None else 0.0)

    def believed_left_s(self, job: int, since: float) -> float:
        """What is expected to be left of one that has run since then."""
        ran_s, whole_s = self.now - since, self.believed_s[job]
        return whole_s - ran_s if ran_s < whole_s else (STRETCH - 1) * ran_s

    def _start_here(self, job: int) -> None:
        self._leave_line(job)
        self.free -= self.devices[job]
        self.local[job] = self.now
        self.at(self.now + self.left_s[job], lambda: self._end_here(job))

    def _end_here(self, job: int) -> None:
        self._ran_s[job] += self.now - self.local.pop(job)
        self.free += self.devices[job]
        self.over[job] = True

    def _place_rented(self) -> None:
        open_ = [each for each in self.machines.values() if each.state is InstanceState.READY]
        open_.sort(key=lambda each: (each.offer.price / each.offer.devices, each.free))
        for job in list(self.waiting):
            need = self.devices[job]
            found = next((each for each in open_ if each.free >= need), None)
            if found is not None:
                self._start_on(found, job)

    def _start_on(self, machine: Machine, job: int) -> None:
        self._leave_line(job)
        if machine.idle_since:
            times = self.idle_s.setdefault(type_key(machine.offer), [])
            times.append(self.now - machine.idle_since)
        machine.idle_since = 0.0
        machine.free -= self.devices[job]
        machine.live[job] = self.now
        self.where[job] = machine
        self.rented.add(job)
        stamp = self._stamp[job]
        self.at(self.now + self.left_s[job], lambda: self._end_on(machine, job, stamp))

    def _end_on(self, machine: Machine, job: int, stamp: int) -> None:
        if self._stamp[job] != stamp:
            return
        self._leave(machine, job)
        self.over[job] = True
        if machine.state is InstanceState.DRAINING and not machine.live:
            self._terminate(machine)

    def _leave(self, machine: Machine, job: int) -> float:
        began = machine.live.pop(job)
        del self.where[job]
        self._stamp[job] += 1
        self._ran_s[job] += self.now - began
        machine.free += self.devices[job]
        machine.used_s += (self.now - began) * self.devices[job]
        return self.now - began

    def _leave_line(self, job: int) -> None:
        self.waiting.remove(job)
        self.queued_s[job] += self.now - self.since[job]
        if self.waited_s[job] < 0:
            self.waited_s[job] = self.queued_s[job]
        self.started_at[job] = self.now

    def _note_idle(self, machine: Machine) -> None:
        if machine.state is InstanceState.READY and not machine.live and not machine.idle_since:
            machine.idle_since = self.now

    # Instances --------------------------------------------------------------------------------

    def rent(self, offer: Offer, jobs: Sequence[int], why: str = "") -> Machine | None:
        """Ask for an instance; nothing if there is none, or no money for it."""
        if not self.supply.is_up(offer, self.now) or not self.purse.take(offer.price):
            return None
        self.asked += 1
        machine = Machine(self.asked, offer, self.now, tuple(jobs), why)
        self.machines[machine.number] = machine
        boot = boot_of(self.seed, machine.number)
        if boot.fails:
            self.at(self.now + GIVE_UP_S, lambda: self._give_up(machine))
        else:
            self.at(self.now + boot.lead_s, lambda: self._ready(machine))
        return machine

    def drain(self, machine: Machine, cause: EndCause, stop_at: float) -> None:
        """No new work; what runs is stopped then."""
        if machine.state is not InstanceState.READY:
            if machine.state is InstanceState.BOOTING:
                machine.cause = cause
                self._terminate(machine)
            return
        machine.state, machine.cause, machine.stop_at = InstanceState.DRAINING, cause, stop_at
        if machine.live:
            self.at(stop_at, lambda: self._stop(machine))
        else:
            self._terminate(machine)

    def look_at_market(self) -> None:
        """Take back what spot is not to be had for any more."""
        for machine in list(self.machines.values()):
            if machine.state is not InstanceState.TERMINATING and not self.supply.is_up(
                machine.offer, self.now
            ):
                self.drain(machine, EndCause.INTERRUPTED, self.now + machine.offer.notice_s)

    def _ready(self, machine: Machine) -> None:
        if machine.state is not InstanceState.BOOTING:
            return
        machine.state, machine.ready_at = InstanceState.READY, self.now
        machine.free = machine.offer.devices
        for job in machine.jobs:
            if job in self.waiting and machine.free >= self.devices[job]:
                self._start_on(machine, job)

    def _give_up(self, machine: Machine) -> None:
        if machine.state is InstanceState.BOOTING:
            machine.cause = EndCause.BOOT_DEADLINE
            self._terminate(machine)

    def _stop(self, machine: Machine) -> None:
        """What still runs goes back to the line, with what it has done by then."""
        if machine.state is not InstanceState.DRAINING:
            return
        for job in list(machine.live):
            ran = self._leave(machine, job)
            self.left_s[job] = max(1.0, self.left_s[job] - ran) + RESTART_S
            self.believed_s[job] = max(60.0, self.believed_s[job] - ran) + RESTART_S
            self.since[job] = self.now
            self.stopped += 1
            insort(self.waiting, job)
        self._terminate(machine)

    def _terminate(self, machine: Machine) -> None:
        machine.state, machine.free = InstanceState.TERMINATING, 0
        self.at(self.now + GONE_S, lambda: self._gone(machine))

    def _gone(self, machine: Machine) -> None:
        machine.state, machine.ended_at = InstanceState.TERMINATED, self.now
        self.purse.give(machine.offer.price)
        del self.machines[machine.number]
        self.ended.append(machine)


def nominees(world: World) -> Iterator[tuple[int, Machine]]:
    """(job, the booting instance that is held for it)."""
    for machine in world.machines.values():
        if machine.state is InstanceState.BOOTING:
            for job in machine.jobs:
                yield job, machine
