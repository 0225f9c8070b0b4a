"""Standing rules: what books by itself, and what it did."""

from dataclasses import dataclass
from typing import Final

from atoll.core.model.ids import ClusterName, QueueName, Tenant
from atoll.core.model.reservation import NO_RESERVATION, RULE_PREFIX, ReservationId, When

ANY_CLUSTER: Final = ClusterName("")
NO_TENANT: Final = Tenant("")


@dataclass(frozen=True, slots=True)
class LargeJobRule:
    """A queued job above a size, or with a guaranteed deadline, gets a booking of its own."""

    devices_above: int = 0
    """Devices above which a job gets one; 0: size does not matter."""
    guaranteed: bool = False
    """A guaranteed deadline is enough."""
    queues: tuple[QueueName, ...] = ()
    """Only these queues and everything below them; empty: all."""


@dataclass(frozen=True, slots=True)
class RollingMaintenanceRule:
    """Every node of a cluster once, a few domains at a time, around other bookings."""

    cluster: ClusterName
    level: str
    most_at_once: int
    """Domains at once, at most."""
    length_s: float
    """For each domain."""
    start_at: float = 0.0
    """Before this none starts."""
    end_at: float = 0.0
    """By then all have ended; 0: no bound."""
    hours_rrule: str = ""
    """Only at these starts, in `zone`; empty: at any time."""
    zone: str = ""


@dataclass(frozen=True, slots=True)
class InteractiveHoursRule:
    """Recurring hours whose size follows what was really used in the weeks before."""

    queue: QueueName
    kind: str
    """Of device."""
    when: When
    weeks: int = 4
    """That count."""
    quantile: float = 0.9
    """Of what was used at once, 0 to 1."""
    least: int = 0
    """Devices."""
    most: int = 0
    """Devices; 0: no bound."""
    cluster: ClusterName = ANY_CLUSTER
    """Empty: any."""


RuleKind = LargeJobRule | RollingMaintenanceRule | InteractiveHoursRule


@dataclass(frozen=True, slots=True)
class Rule:
    """A standing rule in the store."""

    name: str
    kind: RuleKind
    enabled: bool = True
    tenant: Tenant = NO_TENANT
    """Its bookings are this tenant's."""
    etag: int = 1
    status: str = ""
    """A sentence: where it is."""

    @property
    def principal(self) -> str:
        """Who its bookings were created by."""
        return f"{RULE_PREFIX}{self.name}"


@dataclass(frozen=True, slots=True)
class RuleAction:
    """One thing that a rule did, and why."""

    rule: str
    at: float
    what: str
    why: str
    reservation: ReservationId = NO_RESERVATION
