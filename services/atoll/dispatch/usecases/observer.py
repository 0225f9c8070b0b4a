"""What dispatch tells of its work: for metrics, traces and the log."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from atoll.core.model.ids import ClusterName
from atoll.core.model.job import Job
from atoll.core.model.messages import Report
from atoll.dispatch.usecases.outbox import Ready


class RepairCause(enum.StrEnum):
    """Why decisions were read from the store and not from Redis."""

    OPEN = "open"
    """A session began below the head."""
    GAP = "gap"
    """A number is missing."""
    POISON = "poison"
    """An entry cannot be understood."""
    BEHIND = "behind"
    """The store has had more for a while."""
    HINT = "hint"
    """Decisions were said to be committed, and none came."""
    SILENT = "silent"
    """Redis does not answer."""


class BatchKind(enum.StrEnum):
    """What goes into one transaction for many sessions."""

    REPORTS = "reports"
    BEATS = "beats"
    PUSHES = "pushes"


@dataclass(frozen=True, slots=True)
class Settled:
    """A report and its job: as it stands after an applied report, or as it was found."""

    report: Report
    job: Job | None
    since: float
    """Wall time at which the report came in."""


class Observer(Protocol):
    """Told synchronously on hot paths: it must be quick, and it never raises."""

    def pushed(self, items: Sequence[Ready], *, since: float) -> None:
        """Decisions are on their way to an agent; `since`: wall time at which the push began."""
        ...

    def applied(self, settled: Sequence[Settled]) -> None:
        """Reports are committed."""
        ...

    def accepted(self, jobs: Sequence[Job]) -> None:
        """Agents have taken these jobs for the first time."""
        ...

    def refused(self, settled: Sequence[Settled]) -> None:
        """The lifecycle does not allow these reports; they are dealt with all the same."""
        ...

    def batch(self, kind: BatchKind, size: int) -> None:
        """One transaction was made for this many."""
        ...

    def repaired(self, cluster: ClusterName, cause: RepairCause, *, decisions: int) -> None:
        """Decisions were read from the store."""
        ...

    def stream_ahead(self, cluster: ClusterName, number: int) -> None:
        """Redis had a number that the store does not know: its stream was dropped."""
        ...

    def spec_missing(self, cluster: ClusterName, number: int) -> None:
        """A START has no spec in the store; its number was pushed as VOID."""
        ...
