"""The words of an instance's life: what is seen, what is done, and how long is waited."""

import enum
from dataclasses import dataclass

from atoll.core.engine.burst.broker.clock import Jump
from atoll.core.model.burst import EndCause, InstanceState


class Sight(enum.StrEnum):
    """What the provider says of an instance's token."""

    UNKNOWN = "unknown"
    """It did not answer."""
    ABSENT = "absent"
    """It answered, and knows no such token (yet, or any more)."""
    REFUSED = "refused"
    """It refused to create it, or had none: nothing exists under its token."""
    PENDING = "pending"
    RUNNING = "running"
    ENDING = "ending"
    GONE = "gone"
    """Confirmed: it is ended, and costs nothing any more."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An instance as its provider sees it."""

    sight: Sight
    provider_id: str = ""
    created_at: float = 0.0
    interrupted_at: float = 0.0
    """When it will be taken back; 0: no notice was given."""
    message: str = ""


class Act(enum.StrEnum):
    """What is to be done; the row's state afterwards is in the step."""

    WAIT = "wait"
    """Nothing; the row stays as it is."""
    CREATE = "create"
    """Ask the provider (again: its token makes that safe), and take another step with its answer.
    The row stays as it is."""
    BOOTING = "booting"
    """Record that it exists."""
    READY = "ready"
    """Record that its agent has joined."""
    DRAIN = "drain"
    """Record stop_at and drain_by; what runs is told to stop at stop_at."""
    TERMINATE = "terminate"
    """Record the state if it is new, then ask the provider to end it (again)."""
    ENDED = "ended"
    """Record TERMINATED, count the last spend, give the budget back."""
    FAILED = "failed"
    """Record FAILED, give the budget back."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done next."""

    act: Act
    state: InstanceState
    """Of the row afterwards."""
    cause: EndCause = EndCause.NONE
    stop_at: float = 0.0
    drain_by: float = 0.0
    """0: as it is."""
    retry: bool = False
    """Who it was rented for still needs one: decide again soon (retry.py avoids the offer)."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class LifeTerms:
    """How long is waited for what, in seconds."""

    boot_s: float = 600.0
    """From the request until it has joined, at least; then it is given up."""
    boot_leads: float = 3.0
    """Or so many times what its offer usually takes, if that is longer."""
    settle_s: float = 60.0
    """So long a provider may not list what it has created."""
    drain_s: float = 120.0
    grace_s: float = 60.0
    jumps: tuple[Jump, ...] = ()
    """Of the clock that `now` is read from."""
