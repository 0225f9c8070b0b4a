"""Demand for devices, as the broker follows it: all of it once, by pages, and then what changes."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from atoll.core.model.burst import NO_CLUSTER
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName
from atoll.ports.store.common import Cursor

PAGE: Final = 2_000
"""Jobs that are read at once."""


@dataclass(frozen=True, slots=True)
class DemandRow:
    """A job that takes or wants devices, for the forecast."""

    job: JobId
    queue: QueueName
    kind: str
    """Of what it runs on, or would take first."""
    devices: float
    submitted_at: float
    started_at: float
    """0: it has not started."""
    ended_at: float = 0.0
    """0: it has not ended."""
    limit_s: float = 0.0
    waits: bool = False
    """It is not to start before others end, or is held by hand."""
    cluster: ClusterName = NO_CLUSTER
    """Where it runs, or ran last."""
    after: tuple[JobId, ...] = ()
    """Jobs that have to end first."""
    begin_at: float = 0.0
    """Not before; 0: at once."""
    cores: float = 0.0
    """Processors that it would take first."""

    def waits_at(self, now: float) -> bool:
        """It would not start now, however much room there were."""
        return not (self.started_at or self.ended_at) and (self.waits or self.begin_at > now)


@dataclass(frozen=True, slots=True)
class NodeParts:
    """What a node has, for bookings that say no more than which nodes."""

    kinds: tuple[str, ...]
    """Of its devices, by index; empty for one that is broken."""
    cores: float


@dataclass(frozen=True, slots=True)
class ChangedDemand:
    """What has changed since a cursor."""

    cursor: Cursor
    """From which later changes are seen."""
    jobs: tuple[JobId, ...]
    """By number. What they are now may be read after this: it is no older."""


class DemandReads(Protocol):
    """No read here is of one instant with another, and none takes longer than its page.

    Whoever takes the cursor first, then all pages, then what changed since the cursor, and again
    and again, misses nothing: rows that were read too early are read again.
    """

    async def demand_cursor(self) -> Cursor:
        """From which later changes are seen."""
        ...

    def demand(self, *, since: float, page: int = PAGE) -> AsyncIterator[list[DemandRow]]:
        """Jobs that are not ended, by shard and number; then those that ended after `since`."""
        ...

    async def changed_demand(self, cursor: Cursor) -> ChangedDemand:
        """Jobs that were written since, whoever wrote them.

        Raises DomainError CURSOR_EXPIRED when everything must be read anew.
        """
        ...

    async def cores(self) -> float:
        """Processors of all nodes that take work and are not rented."""
        ...

    async def node_parts(self, nodes: Iterable[NodeId]) -> dict[NodeId, NodeParts]:
        """By number; those that do not exist are left out."""
        ...

    async def demand_of(self, jobs: Iterable[JobId]) -> list[DemandRow]:
        """Jobs as they are, by number; those that do not exist are left out."""
        ...
