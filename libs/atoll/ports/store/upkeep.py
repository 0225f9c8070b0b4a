"""How long things are kept, and what keeps the store small."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what is over is kept, in seconds of database time."""

    jobs_s: float = 30 * 86_400.0
    """From a job's end; its attempts go with it."""
    requests_s: float = 2 * 86_400.0
    """From the submit: how late a call may be repeated."""
    decisions_s: float = 3_600.0
    """From the decision, once it is acknowledged and its attempt has ended."""
    events_s: float = 7 * 86_400.0
    """How long a watch may stay away. At least two minutes."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """Rows that were deleted. Any that equals the limit means: there is more."""

    jobs: int
    requests: int
    decisions: int
    events: int


class UpkeepStore(Protocol):
    """What some loop has to do now and then; safe from several processes at once."""

    async def maintain(self) -> None:
        """Every few seconds. Raises StoreUnavailable."""
        ...

    async def prune(self, keep: Retention, *, limit: int = 1000) -> Pruned:
        """Delete what is older than `keep`, at most `limit` rows of each kind."""
        ...
