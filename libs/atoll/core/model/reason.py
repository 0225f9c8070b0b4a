"""Coded why-nots, which explain a refusal or a wait. Codes are published, never renamed."""

import enum
from dataclasses import dataclass, field


class ReasonCode(enum.StrEnum):
    """Why a job is not placed, was rolled back, or ended."""

    # why a job waits
    NO_CLUSTER = "NO_CLUSTER"
    CPU_SHORT = "CPU_SHORT"
    MEMORY_SHORT = "MEMORY_SHORT"
    DEVICES_SHORT = "DEVICES_SHORT"
    DEVICE_KIND_ABSENT = "DEVICE_KIND_ABSENT"
    PROFILE_ABSENT = "PROFILE_ABSENT"
    LABELS_MISMATCH = "LABELS_MISMATCH"
    GANG_TOO_WIDE = "GANG_TOO_WIDE"
    NO_DOMAIN_FITS = "NO_DOMAIN_FITS"
    NODE_UNSCHEDULABLE = "NODE_UNSCHEDULABLE"
    NODE_SUSPECT = "NODE_SUSPECT"
    CLUSTER_SILENT = "CLUSTER_SILENT"
    CLUSTER_CORDONED = "CLUSTER_CORDONED"
    CLUSTER_BEHIND = "CLUSTER_BEHIND"
    CLUSTER_AVOIDED = "CLUSTER_AVOIDED"
    ON_LOST_UNSUPPORTED = "ON_LOST_UNSUPPORTED"
    ANTI_AFFINITY = "ANTI_AFFINITY"
    SPREAD_TOO_NARROW = "SPREAD_TOO_NARROW"
    NO_ROOM = "NO_ROOM"
    QUEUE_LIMIT = "QUEUE_LIMIT"
    DEPENDENCY = "DEPENDENCY"
    BEGIN_IN_FUTURE = "BEGIN_IN_FUTURE"
    HELD = "HELD"
    BEHIND_OTHERS = "BEHIND_OTHERS"
    RESERVED = "RESERVED"
    BOOKING_NOT_OPEN = "BOOKING_NOT_OPEN"
    RENTED = "RENTED"
    """The node is rented, and the job's queue, or the job itself, may not use it."""
    # why an attempt was rejected or ended
    NODE_ABSENT = "NODE_ABSENT"
    DEVICE_ABSENT = "DEVICE_ABSENT"
    CAPACITY_TAKEN = "CAPACITY_TAKEN"
    BIND_DEADLINE = "BIND_DEADLINE"
    GANG_UNWOUND = "GANG_UNWOUND"
    BACKEND_ERROR = "BACKEND_ERROR"
    PORT_TAKEN = "PORT_TAKEN"
    EXIT_NONZERO = "EXIT_NONZERO"
    EXIT_UNKNOWN = "EXIT_UNKNOWN"
    TIME_LIMIT = "TIME_LIMIT"
    NODE_DIED = "NODE_DIED"
    STOPPED_BY_GUARD = "STOPPED_BY_GUARD"
    USER_CANCEL = "USER_CANCEL"
    PREEMPTED = "PREEMPTED"
    STOPPED_FOR_BOOKING = "STOPPED_FOR_BOOKING"
    CLUSTER_LOST = "CLUSTER_LOST"
    CLUSTER_FORGOTTEN = "CLUSTER_FORGOTTEN"
    DEPENDENCY_FAILED = "DEPENDENCY_FAILED"
    NEVER_FITS = "NEVER_FITS"
    # what became of a promise
    GUARANTEE_LOST = "GUARANTEE_LOST"


@dataclass(frozen=True, slots=True)
class Reason:
    """One coded reason with its numbers, and a sentence that a person can act on."""

    code: ReasonCode
    message: str
    cluster: str = ""
    needed: int = 0
    available: int = 0
    unit: str = ""
    """What `needed` and `available` count: `milli-CPU`, `bytes`, `devices`, `nodes` …"""
    count: int = 0
    """Nodes (or jobs) that this reason was found on."""
    help: str = ""
    """What would help, empty when unknown."""
    metadata: tuple[tuple[str, str], ...] = field(default=())
