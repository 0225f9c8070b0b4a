"""Rows of bookings in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from atoll.adapters.memory.overlay import Overlay
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.ids import NO_EPOCH, Tenant
from atoll.core.model.reservation import Occurrence, Reservation, ReservationId
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE
from atoll.core.model.standing_rule import Rule, RuleAction
from atoll.ports.store.bookings import BookingRecord, BookingRequest, LoopFence, Use

RuleKey = tuple[Tenant, str]
THE_LOOP = 0


@dataclass(frozen=True, slots=True)
class LoggedBooking:
    """An event as it was committed."""

    seq: int
    event: BookingRecord


@dataclass(slots=True)
class BookingTables:
    """Committed rows, and the next numbers."""

    reservations: dict[ReservationId, Reservation] = field(default_factory=dict)
    uids: dict[ReservationId, str] = field(default_factory=dict)
    ends: dict[ReservationId, float] = field(default_factory=dict)
    """When reservations were over."""
    occurrences: dict[OccurrenceId, Occurrence] = field(default_factory=dict)
    uses: dict[OccurrenceId, Use] = field(default_factory=dict)
    requests: dict[RuleKey, tuple[BookingRequest, float]] = field(default_factory=dict)
    rules: dict[RuleKey, Rule] = field(default_factory=dict)
    actions: dict[int, tuple[Tenant, RuleAction]] = field(default_factory=dict)
    loop: dict[int, LoopFence] = field(
        default_factory=lambda: {THE_LOOP: LoopFence(NO_EPOCH, seq=0)}
    )
    reservation_numbers: "count[int]" = field(default_factory=lambda: count(1))
    occurrence_numbers: "count[int]" = field(default_factory=lambda: count(1))
    action_numbers: "count[int]" = field(default_factory=lambda: count(1))


class BookingRows:
    """The same as one open transaction sees them."""

    def __init__(self, tables: BookingTables) -> None:
        self.tables = tables
        self.reservations = Overlay(tables.reservations)
        self.uids = Overlay(tables.uids)
        self.ends = Overlay(tables.ends)
        self.occurrences = Overlay(tables.occurrences)
        self.uses = Overlay(tables.uses)
        self.requests = Overlay(tables.requests)
        self.rules = Overlay(tables.rules)
        self.actions = Overlay(tables.actions)
        self.loop = Overlay(tables.loop)
        self.events: list[BookingRecord] = []

    def apply(self) -> None:
        """Commit."""
        for table in (
            self.reservations, self.uids, self.ends, self.occurrences, self.uses, self.requests,
            self.rules, self.actions, self.loop,
        ):  # fmt: skip
            table.apply()


def live_of(
    occurrences: Mapping[OccurrenceId, Occurrence], reservation: ReservationId
) -> list[Occurrence]:
    """Occurrences of a reservation that are not over, by start."""
    found = (each for each in occurrences.values() if each.reservation == reservation)
    live = (each for each in found if each.state not in TERMINAL_OCCURRENCE)
    return sorted(live, key=lambda each: (each.start_at, each.id))
