"""What the broker decides on, and what it decides. Money: micro-dollars; time: unix seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.burst.broker.memory import Memory
from atoll.core.model.burst import (
    BurstPolicy,
    EndCause,
    Instance,
    InstanceId,
    Offer,
)
from atoll.core.model.burst_wants import BurstDecision, Want
from atoll.core.model.ids import JobId, QueueName

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Use:
    """What goes on on an instance."""

    joined: bool = False
    """Its agent has opened a session, and it has nodes."""
    live: int = 0
    """Attempts that are not ended."""
    held: int = 0
    """Jobs that it is held for."""
    devices: int = 0
    """Held by what runs there."""
    left_s: float = 0.0
    """For how long what runs there is expected to go on; 0: nobody knows, or it must not stop."""


NO_USE = Use()


@dataclass(frozen=True, slots=True)
class Room:
    """What may still be bound under one policy; None: no bound. Below 0: it is broken already."""

    rate_left: int | None = None
    """An hour, all instances that are not ended counted."""
    month_left: int | None = None
    """Of the month, less what all that is bound costs until it can be ended (rooms.room_of)."""


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Demand of one device kind beyond what is there without renting."""

    kind: str
    """Empty: nodes without devices, counted in nodes."""
    queue: QueueName | None
    """Who pays for what is rented by it. None: everybody, all queues' demand together."""
    step_s: float
    excess: Floats
    """(R, H) equally likely futures by steps from now on: devices missing; below 0: none is.
    What is rented does not count as being there, who runs on it or waits does count as demand."""


def aged(outlook: Outlook, passed_s: float) -> Outlook | None:
    """What is left of it so much later; None: it is over."""
    gone = int(max(0.0, passed_s) // outlook.step_s)
    if gone >= outlook.excess.shape[1]:
        return None
    return replace(outlook, excess=outlook.excess[:, gone:]) if gone else outlook


class Setback(NamedTuple):
    """An instance that did not do its work."""

    at: float
    taken: bool = False
    """It came, and the provider took it back."""


USUAL_LATE_S: Final = 600.0
"""What Options.late_s is where nobody has set it, in the service as in the simulation."""


@dataclass(frozen=True, slots=True)
class Options:
    """What does not depend on the state of things."""

    commitment_s: float = 3600.0
    """What is rented by forecast is meant to be of use for so long from its start on."""
    end_s: float = 300.0
    """From the wish to end an instance on which nothing runs until nothing is paid for it."""
    drain_s: float = 120.0
    """What runs on a drained instance may end by itself for so long, then it is told to stop."""
    grace_s: float = 60.0
    """From there until the instance is ended, whatever runs."""
    loop_s: float = 30.0
    """Between two decisions at most, save for failures: budgets are left so much early."""
    band: float = 0.1
    """Hysteresis of what is held by forecast, in quantiles (amount.py)."""
    margin: float = 0.1
    """A job is rented for when that saves more than its price by this part of it."""
    worst_ratio: float = 3.0
    """Of keep_alive.py."""
    least_keep_s: float = 60.0
    """No idle instance is ended earlier, unless a budget or a policy demands it."""
    most_keep_s: float = 3600.0
    """None is kept for longer that no forecast wants."""
    deadline_h: float = 24.0
    """A deadline missed is worth so many hours of delay of the job, or its work if that is more."""
    unknown_s: float = 3600.0
    """A wait that nobody can tell is expected to go on for as long as so far, and at least so."""
    again_s: float = 900.0
    """An offer that failed is not taken for so long, twice as long after each further failure."""
    taken_back_s: float = 60.0
    """The same where an instance came, and was taken back: when there is spot again it is cheap."""
    home_s: float = 3600.0
    """What runs on an instance goes on in idle capacity of one's own if it is expected to last
    for longer than this; 0: it stays where it is."""
    late_s: float = 0.0
    """A job that starts later than this after it was submitted is late; 0: that is no matter."""
    late_share: float = 0.025
    """Of the jobs so many may be late: those that are dearest to rent for."""
    egress: Mapping[str, int] = field(default_factory=dict)
    """By region: what moving a job's data there and back costs."""
    most_rents: int = 50
    """In one decision."""


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """All that a decision may depend on."""

    now: float
    wants: tuple[Want, ...] = ()
    """In the order of their queues."""
    instances: tuple[Instance, ...] = ()
    """Those that are neither TERMINATED nor FAILED."""
    uses: Mapping[InstanceId, Use] = field(default_factory=dict)
    offers: tuple[Offer, ...] = ()
    policies: Mapping[QueueName | None, BurstPolicy] = field(default_factory=dict)
    budgets: Mapping[QueueName | None, Room] = field(default_factory=dict)
    """Who is not there has no bound of its own."""
    outlooks: tuple[Outlook, ...] = ()
    idle_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Past times from idle to the next use, by type_key."""
    setbacks: Mapping[str, tuple[Setback, ...]] = field(default_factory=dict)
    """Instances of an offer that failed to come or were taken back, by Offer.key (retry.py)."""
    spare: Mapping[str, int] = field(default_factory=dict)
    """Devices by kind that are idle, not rented, and that nobody waits for."""
    came: int = 0
    """Jobs that may burst and were submitted since the last decision, whether they wait or not."""
    memory: Memory = field(default_factory=Memory)
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class Rent:
    """One instance to be rented."""

    offer: Offer
    queue: QueueName | None
    """Whose budget pays."""
    jobs: tuple[JobId, ...]
    """For whom; empty: for the forecast."""
    ahead: int
    """What it is expected to cost until it is ended: `ahead` of BurstTx.take_budget."""
    why: str
    terms: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Drain:
    """One instance to be ended."""

    instance: InstanceId
    cause: EndCause
    stop_at: float
    """What still runs is told to stop then."""
    drain_by: float
    """It is ended then, whatever runs."""
    why: str


@dataclass(frozen=True, slots=True)
class Deeds:
    """What is to be done now."""

    rents: tuple[Rent, ...] = ()
    drains: tuple[Drain, ...] = ()
    decisions: tuple[BurstDecision, ...] = ()
    """One for each rent and drain, and for each refusal that is new."""
    memory: Memory = field(default_factory=Memory)
    """For the next decision."""


def type_key(offer: Offer) -> str:
    """What instances have in common that are idle for about as long: zones do not matter."""
    return f"{offer.provider}/{offer.instance_type}/{offer.market}"
