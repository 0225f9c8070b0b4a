"""Runs the jobs of a cluster under a rule that rents, and says what it came to."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import numpy as np

from atoll.core.engine.burst.demand.series import Floats
from atoll.sim.renting.machines import HOUR, Machine
from atoll.sim.renting.world import World

LOOK_S: Final = 30.0
"""A rule looks so often while there is something to be decided."""


class Rule(Protocol):
    """Rents and ends instances, by what is known of the world now."""

    def look(self, world: World) -> None:
        """Act."""
        ...

    def hour(self, world: World) -> None:
        """It is a full hour."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """What a run gave."""

    waited_s: Floats
    """(J) until the first start."""
    queued_s: Floats
    """(J) in the line all together, after stops too."""
    machines: tuple[Machine, ...]
    above: int
    stopped: int


def play(rule: Rule, world: World, *, tick: Callable[[float], None] = lambda now: None) -> Played:
    """All jobs, until the last has ended and nothing is rented any more."""
    for job, at in enumerate(world.work.submitted_s.tolist()):
        world.at(at, partial(world.arrive, job))
    hour = world.next_at() // HOUR
    while (then := world.next_at()) < np.inf:
        looks = _busy(world)
        until = min(_after(world.now, LOOK_S) if looks else then, (hour + 1) * HOUR)
        world.step(until)
        if world.now >= (hour + 1) * HOUR:
            hour += 1
            rule.hour(world)
        if _busy(world):
            rule.look(world)
            world.look_at_market()
        tick(world.now)
    return Played(
        np.array(world.waited_s),
        np.array(world.queued_s),
        tuple(world.ended),
        world.purse.above,
        world.stopped,
    )


def _busy(world: World) -> bool:
    return bool(world.waiting or world.machines)


def _after(now: float, step_s: float) -> float:
    return (now // step_s + 1) * step_s
