"""Reservations: what a user books, and the occurrences that come of it. Times are unix seconds."""

import enum
from dataclasses import dataclass
from typing import Final, NewType

from atoll.core.model.booking import NodeShare, OccurrenceId, OnEnd, Owners
from atoll.core.model.ids import ClusterName, QueueName, Tenant
from atoll.core.model.resources import DeviceRequest

ReservationId = NewType("ReservationId", int)
"""Number of a reservation in the store, never reused."""

NO_RESERVATION: Final = ReservationId(0)
NO_OCCURRENCE: Final = OccurrenceId(0)
NOBODY: Final = Owners()
BIND_BEFORE_S: Final = 3600.0
"""How long before a start its nodes are settled, unless told otherwise."""
RULE_PREFIX: Final = "rule:"
"""Before a rule's name, where somebody is named who created a reservation."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Units of one device request, each on one node with its CPU and memory."""

    device: DeviceRequest | None
    """What one unit is; None: CPU and memory alone."""
    count: int
    """Number of units."""
    cpu_milli: int | None = None
    """Of a unit; None: the share of its node that its devices are."""
    memory_bytes: int | None = None
    """Of a unit; None: the share of its node that its devices are."""


@dataclass(frozen=True, slots=True)
class WholeNodes:
    """Nodes as a whole: so many, or exactly those that are named."""

    count: int = 0
    names: tuple[str, ...] = ()
    """As `cluster/node`."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels that the nodes must have, sorted by key."""


@dataclass(frozen=True, slots=True)
class WholeDomains:
    """Domains of a level as a whole: so many, or exactly those that are named."""

    level: str
    count: int = 0
    names: tuple[str, ...] = ()
    """As `cluster/domain`; levels between are left out: `west/r7`, not `west/b1/r7`."""


@dataclass(frozen=True, slots=True)
class What:
    """What is booked: exactly one of amounts, nodes, domains and percent."""

    amounts: tuple[Amount, ...] = ()
    nodes: WholeNodes | None = None
    domains: WholeDomains | None = None
    percent: int = 0
    """Of every kind of device of each of `clusters`, 1 to 100; of nodes where there is none."""
    clusters: tuple[ClusterName, ...] = ()
    """Where; empty: in any one cluster."""
    split: bool = False
    """Amounts may be put together from several clusters."""


class Preference(enum.StrEnum):
    """Which of several windows is taken."""

    EARLY = "early"
    LATE = "late"
    CHEAPEST = "cheapest"
    """Where it displaces least; the earliest of those."""


@dataclass(frozen=True, slots=True)
class Flexible:
    """A window that may lie anywhere in a span."""

    earliest_at: float
    latest_end_at: float
    preference: Preference = Preference.EARLY


@dataclass(frozen=True, slots=True)
class When:
    """When, and how often. Exactly one of `start_at`, `start_local` and `flexible` is given."""

    length_s: float
    start_at: float | None = None
    start_local: str = ""
    """Local time in `zone`, such as `2026-12-07T09:00`."""
    flexible: Flexible | None = None
    """Not with a recurrence."""
    zone: str = ""
    """IANA name; empty: UTC. Recurrences follow its local time."""
    rrule: str = ""
    """RFC 5545, without its name; empty: once."""
    exdates: tuple[str, ...] = ()
    """Local starts that are left out."""


@dataclass(frozen=True, slots=True)
class ReservationSpec:
    """Everything that a user says of a reservation, defaults filled in."""

    name: str
    what: What
    when: When
    owners: Owners = NOBODY
    priority: int = 0
    override: bool = False
    """Bookings of lower priority that are in the way are moved, or cancelled with notice."""
    bind_before_s: float = BIND_BEFORE_S
    pinned: bool = False
    """Its nodes are settled at once, and no other replaces one that fails."""
    lend: bool = True
    on_end: OnEnd = OnEnd.STOP
    end_grace_s: float = 0.0
    release_after_idle_s: float = 0.0
    """Without a run of an owner for so long, a window is given back; 0: never."""
    charge: bool = False
    """The first queue is charged for all of it while it lasts, used or not."""
    note: str = ""


class ReservationState(enum.StrEnum):
    """Where a reservation is. Only ACTIVE is not final."""

    ACTIVE = "ACTIVE"
    """It has occurrences to come, or one that runs."""
    ENDED = "ENDED"
    CANCELLED = "CANCELLED"


class OccurrenceState(enum.StrEnum):
    """Where an occurrence is. ENDED, RELEASED and CANCELLED are final."""

    PLANNED = "PLANNED"
    """To come; its nodes may still change."""
    BOUND = "BOUND"
    """To come; its nodes are settled."""
    RUNNING = "RUNNING"
    ENDED = "ENDED"
    RELEASED = "RELEASED"
    """Given back before its end, by its owner or because nobody came."""
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True)
class Part:
    """An occurrence's place in one cluster."""

    cluster: ClusterName
    shares: tuple[NodeShare, ...]


Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One window of a reservation."""

    id: OccurrenceId
    reservation: ReservationId
    name: str
    """Of the reservation."""
    start_at: float
    end_at: float
    state: OccurrenceState = OccurrenceState.PLANNED
    parts: Parts = ()
    start_local: str = ""
    """Its start in the reservation's zone, such as `2026-12-07T09:00:00+01:00`."""
    message: str = ""
    """Why it was moved, cancelled, released, or is short of nodes."""
    started_at: float = 0.0
    """When the loop started it; 0: not yet."""
    ended_at: float = 0.0
    """When it was over, released or cancelled; 0: not yet."""
    missing_devices: int = 0
    """Devices, or whole nodes, that lack because theirs failed and none could replace them."""
    used_device_hours: float = 0.0
    what: What | None = None
    """What it is of, where that is not what the reservation says: some of it was given back, or
    the reservation was changed while it ran."""
    revision: int = 1


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation in the store."""

    id: ReservationId
    spec: ReservationSpec
    tenant: Tenant
    created_by: str
    """Who created it; a rule's name with `rule:` before it."""
    created_at: float
    state: ReservationState = ReservationState.ACTIVE
    etag: int = 1
    planned_until: float = 0.0
    """Occurrences are planned until then."""
    message: str = ""
    remarks: tuple[str, ...] = ()
    """How its times were understood: gaps and folds of local time."""
    revision: int = 1

    @property
    def payers(self) -> tuple[QueueName, ...]:
        """Queues that are charged for its windows, the one that pays first; see Window.charge."""
        return self.spec.owners.queues if self.spec.charge else ()


class ObstacleKind(enum.StrEnum):
    """What sort of thing is in the way of a booking."""

    BOOKING = "booking"
    RUN = "run"
    GUARANTEE = "guarantee"
    CAPACITY = "capacity"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing that is in the way of a booking."""

    kind: ObstacleKind
    name: str
    """Of the booking, `1042.1` for a run, of the guaranteed job; empty for capacity."""
    owner: str
    """Queue, or whoever owns it."""
    cluster: str
    amount: int
    """Devices (or nodes) that it holds of what is needed."""
    until: float
    """Until when it holds them; 0: nobody can tell."""
    message: str


class DisplacedKind(enum.StrEnum):
    """What sort of thing gives way to a booking."""

    RUN = "run"
    BOOKING = "booking"


@dataclass(frozen=True, slots=True)
class Displaced:
    """A run that a window would stop, or a booking that it would move or end."""

    kind: DisplacedKind
    name: str
    """`1042.1`, or the name of the booking."""
    queue: str
    devices: int
    device_seconds: float
    """That would be lost or come later."""


@dataclass(frozen=True, slots=True)
class CandidateWindow:
    """A window that could be had, and what it displaces."""

    start_at: float
    end_at: float
    parts: Parts
    displaced: tuple[Displaced, ...] = ()

    @property
    def cost(self) -> float:
        """Device-seconds over all that it displaces."""
        return sum(each.device_seconds for each in self.displaced)
