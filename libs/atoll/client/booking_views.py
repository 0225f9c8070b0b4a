"""What the reservation service answers, as values. Times are unix seconds; 0 means: not yet."""

from dataclasses import dataclass

from atoll.core.model.reservation import (
    CandidateWindow,
    Displaced,
    Obstacle,
    Occurrence,
    ReservationSpec,
    ReservationState,
)


@dataclass(frozen=True, slots=True)
class BookingInfo:
    """A reservation as it stood when it was read."""

    id: int
    """0: it was only checked."""
    spec: ReservationSpec
    state: ReservationState
    tenant: str = ""
    created_by: str = ""
    created_at: float = 0.0
    etag: int = 0
    next: Occurrence | None = None
    """The present or next occurrence."""
    planned: int = 0
    """Occurrences to come, as far as they are planned."""
    planned_until: float = 0.0
    message: str = ""
    remarks: tuple[str, ...] = ()
    """How its times were understood."""
    occurrences: tuple[Occurrence, ...] = ()
    """The next ones, at most 100; lists do not have them."""
    displaced: tuple[Displaced, ...] = ()
    """What a new booking displaces."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name


@dataclass(frozen=True, slots=True)
class FoundWindows:
    """Windows that could be had, the best first; without any, what is in the way."""

    windows: tuple[CandidateWindow, ...]
    obstacles: tuple[Obstacle, ...] = ()


@dataclass(frozen=True, slots=True)
class CalendarRow:
    """One cluster's devices of a kind over time: of each cell the most held, the least free."""

    cluster: str
    kind: str
    """Empty: nodes."""
    total: int
    booked: tuple[float, ...]
    running: tuple[float, ...]
    free: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CalendarInfo:
    """What is free over time, and the bookings in it."""

    from_at: float
    step_s: float
    rows: tuple[CalendarRow, ...]
    occurrences: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class ImportedEvent:
    """What came of one event of a calendar."""

    uid: str
    outcome: str
    """`created`, `updated`, `unchanged`, `cancelled`, `refused`."""
    reservation_id: int
    message: str
    name: str


@dataclass(frozen=True, slots=True)
class BookingEventInfo:
    """One thing that happened to a booking."""

    reservation_id: int
    name: str
    occurrence_id: int
    """0: the reservation as a whole."""
    event: str
    """`created`, `updated`, `moved`, `bound`, `started`, `ended`, `released`, `cancelled`,
    `short`."""
    at: float
    message: str
    principal: str
    cursor: str = ""
    """Where a watch goes on after it."""


@dataclass(frozen=True, slots=True)
class BookingFilter:
    """Which reservations to list; what is empty does not restrict."""

    from_at: float = 0.0
    until_at: float = 0.0
    queue: str = ""
    created_by: str = ""
    cluster: str = ""
    all: bool = False
    """Ended and cancelled ones too."""
