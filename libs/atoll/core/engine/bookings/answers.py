"""What is asked of the calendar, and what it answers. Times are unix seconds."""

from dataclasses import dataclass

from atoll.core.model.booking import OccurrenceId, Owners
from atoll.core.model.ids import ClusterName, QueueName
from atoll.core.model.reservation import (
    CandidateWindow,
    Displaced,
    Flexible,
    Obstacle,
    Occurrence,
    Parts,
    Preference,
    Reservation,
    ReservationId,
    What,
)


@dataclass(frozen=True, slots=True)
class Span:
    """A time that is wanted: the start and end of one occurrence."""

    start: float
    end: float
    local: str = ""
    """The start in its zone, such as `2026-12-07T09:00:00+01:00`."""


@dataclass(frozen=True, slots=True)
class Booked:
    """An occurrence that has its place, and what the calendar must know to find it another."""

    id: OccurrenceId
    reservation: ReservationId
    name: str
    """Of the reservation."""
    start: float
    end: float
    parts: Parts
    what: What
    owners: Owners
    """What they run there already is not displaced by it. Nobody at all: maintenance, for which
    nodes that take no work will do, too."""
    priority: int = 0
    pinned: bool = False
    running: bool = False
    flexible: Flexible | None = None

    @property
    def queue(self) -> str:
        """The first queue of its owners; empty when there is none."""
        return self.owners.queues[0] if self.owners.queues else ""

    missing: int = 0
    """Devices, or whole nodes, that it lacks because theirs failed."""


def booked_of(reservation: Reservation, occurrence: Occurrence, *, running: bool) -> Booked:
    """An occurrence of a reservation as the calendar needs it."""
    spec = reservation.spec
    return Booked(
        id=occurrence.id,
        reservation=reservation.id,
        name=spec.name,
        start=occurrence.start_at,
        end=occurrence.end_at,
        parts=occurrence.parts,
        what=occurrence.what or spec.what,
        owners=spec.owners,
        priority=spec.priority,
        pinned=spec.pinned,
        running=running,
        flexible=spec.when.flexible,
        missing=occurrence.missing_devices,
    )


@dataclass(frozen=True, slots=True)
class Placed:
    """One occurrence with its place."""

    start: float
    end: float
    parts: Parts
    local: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of a booking that gives way to one of higher priority."""

    id: OccurrenceId
    reservation: ReservationId
    name: str
    start: float
    end: float
    parts: Parts
    """Its new place; empty when it is cancelled."""
    message: str

    @property
    def cancelled(self) -> bool:
        """True: there is no other place for it."""
        return not self.parts


@dataclass(frozen=True, slots=True)
class Accepted:
    """A booking that can be kept. Nothing is entered in the calendar by it."""

    placed: tuple[Placed, ...]
    """By span, in their order."""
    displaced: tuple[Displaced, ...] = ()
    moves: tuple[Move, ...] = ()
    """Of lower bookings; they are to be written in the same transaction."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A booking that cannot be kept, for the first span that fails."""

    start: float
    obstacles: tuple[Obstacle, ...]
    """What stands in the way, the largest first."""
    alternatives: tuple[CandidateWindow, ...] = ()
    """The nearest windows that could be had, three at most."""


@dataclass(frozen=True, slots=True)
class Query:
    """Asks for windows."""

    what: What
    length_s: float
    earliest_at: float
    latest_end_at: float
    most: int = 3
    preference: Preference = Preference.EARLY
    priority: int | None = None
    """Bookings below it are not in the way; None: all are."""
    queues: tuple[QueueName, ...] = ()
    nobody: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The best windows first; without any, what stands in the way at the start of the span."""

    windows: tuple[CandidateWindow, ...]
    obstacles: tuple[Obstacle, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebound:
    """An occurrence's place after nodes of it failed."""

    parts: Parts
    missing: int
    """Devices, or whole nodes, for which there is no other place."""
    changed: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class AvailabilityRow:
    """One cluster's devices of a kind over time: of each cell the most held, the least free."""

    cluster: ClusterName
    kind: str
    """Empty: nodes."""
    total: int
    booked: tuple[float, ...]
    running: tuple[float, ...]
    free: tuple[float, ...]
