"""What is read and written of bookings beside the model: requests, use, events, filters."""

from dataclasses import dataclass

from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import Epoch, QueueName, Tenant
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reservation import (
    NO_OCCURRENCE,
    NO_RESERVATION,
    Occurrence,
    Reservation,
    ReservationId,
)
from atoll.core.model.reservation_lifecycle import BookingEvent
from atoll.ports.store.common import Cursor


@dataclass(frozen=True, slots=True)
class LoopFence:
    """What the loop's leader must still be true about for its commit to stand."""

    epoch: Epoch
    seq: int


@dataclass(frozen=True, slots=True)
class BookingRequest:
    """A request key, and the reservation that came of it."""

    tenant: Tenant
    key: str
    body_hash: bytes
    reservation: ReservationId = NO_RESERVATION


@dataclass(frozen=True, slots=True)
class Kept:
    """An occurrence with its reservation."""

    reservation: Reservation
    occurrence: Occurrence
    busy_at: float = 0.0
    """When an owner's run was last seen in it; 0: never."""
    used_until: float = 0.0
    """Until when `used_device_hours` counts."""


@dataclass(frozen=True, slots=True)
class Use:
    """What owners used of an occurrence so far."""

    occurrence: OccurrenceId
    used_device_hours: float
    busy_at: float
    used_until: float


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that has been, or is; 0 as its end: it is."""

    started_at: float
    ended_at: float
    tasks: tuple[TaskPlacement, ...]


@dataclass(frozen=True, slots=True)
class BookingRecord:
    """One thing that happened to a booking, as watches show it."""

    reservation: ReservationId
    tenant: Tenant
    name: str
    event: BookingEvent
    at: float
    occurrence: OccurrenceId = NO_OCCURRENCE
    queues: tuple[QueueName, ...] = ()
    """Of the owners."""
    message: str = ""
    principal: str = ""


@dataclass(frozen=True, slots=True)
class BookingPage:
    """Events in the order of their commits, and the cursor after them."""

    events: tuple[BookingRecord, ...]
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class ReservationFilter:
    """Which reservations a list shows. Empty members do not restrict."""

    tenant: Tenant
    ends_after: float = 0.0
    """With an occurrence that ends after this."""
    starts_before: float = 0.0
    """With an occurrence that starts before this."""
    queue: str = ""
    """For this queue, or below or above it."""
    created_by: str = ""
    cluster: str = ""
    over: bool = False
    """Ended and cancelled ones too."""


@dataclass(frozen=True, slots=True)
class OccurrenceFilter:
    """Which occurrences a list shows. Empty members do not restrict."""

    tenant: Tenant
    reservation: ReservationId = NO_RESERVATION
    ends_after: float = 0.0
    starts_before: float = 0.0
    queue: str = ""
    """Of reservations for this queue, or below or above it."""
    cluster: str = ""
    over: bool = False
    """Ended, released and cancelled ones too."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A reservation with its present or next occurrence, and how many are to come."""

    reservation: Reservation
    following: Occurrence | None
    planned: int
    key: float
    """Where it stands in the list: its next start, or its last one."""


@dataclass(frozen=True, slots=True)
class BookingRetention:
    """How long what is over is kept, in seconds of database time."""

    reservations_s: float = 90 * 86_400.0
    """From the end; occurrences go with them, and those of live ones after as long."""
    requests_s: float = 2 * 86_400.0
    events_s: float = 7 * 86_400.0
    """How long a watch may stay away. At least two minutes."""
    actions_s: float = 90 * 86_400.0
