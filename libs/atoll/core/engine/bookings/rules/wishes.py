"""What rules look at, and what they wish for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.core.model.plan import PendingJob
from atoll.core.model.reservation import (
    Occurrence,
    OccurrenceState,
    Reservation,
    ReservationId,
    ReservationSpec,
)
from atoll.core.model.standing_rule import Rule

Made = Sequence[tuple[Reservation, Occurrence]]
"""All occurrences of a rule's bookings, those that are over included."""
LIVE: Final = frozenset({
    OccurrenceState.PLANNED,
    OccurrenceState.BOUND,
    OccurrenceState.RUNNING,
})
DONE: Final = frozenset({OccurrenceState.ENDED, OccurrenceState.RELEASED})
MOST_NAME: Final = 63


@dataclass(frozen=True, slots=True)
class Book:
    """A booking is wished for."""

    spec: ReservationSpec
    why: str
    otherwise: tuple[ReservationSpec, ...] = ()
    """To be tried in this order when it is refused."""


@dataclass(frozen=True, slots=True)
class Change:
    """A booking should become another one."""

    reservation: ReservationId
    spec: ReservationSpec
    why: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """A booking is no longer wished for."""

    reservation: ReservationId
    why: str


Wish = Book | Change | Cancel


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule wishes for, and a sentence on where it is."""

    wishes: tuple[Wish, ...]
    status: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules look at."""

    made: Made = ()
    """The rule's own."""
    pending: Sequence[PendingJob] = ()
    """Queued jobs, for LargeJobRule."""
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Nodes as `cluster/node` by domain as `cluster/domain`, for RollingMaintenanceRule."""
    used: Sequence[tuple[float, float]] = ()
    """(time, devices in use from then on) in order, for InteractiveHoursRule."""


def name_of(rule: Rule, rest: str) -> str:
    """The name of a booking that a rule makes; what no name may have becomes a dash."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{rule.name}-{rest}")[:MOST_NAME]


def live(made: Made) -> list[tuple[Reservation, Occurrence]]:
    """Those that are to come, or run."""
    return [(booked, at) for booked, at in made if at.state in LIVE]
