"""Bounds of one cycle, and what it is to leave alone."""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from atoll.core.model.ids import JobId
from atoll.core.model.plan import Claim


@dataclass(frozen=True, slots=True)
class CycleLimits:
    """Bounds of one cycle."""

    max_placements: int = 4096
    """Jobs placed in one plan, at most."""
    max_explained: int = 8
    """Distinct requests whose wait is told with numbers; of others only that there is no room."""
    max_preemptors: int = 16
    """Blocked jobs for which others may be stopped are looked for in one cycle."""
    bind_s: float = 60.0
    """From the end of its victims until a job has started: so long its hold lasts."""
    reservations: int = 1
    """Blocked jobs that hold one, per cluster, 0 to 32."""
    spared: Container[JobId] = ()
    """Jobs for which nobody is stopped: others shrink for them."""
    claims: Sequence[Claim] = ()
    """What guaranteed deadlines of queued jobs will need."""
