"""The quick way of decisions, and wake-ups; both may lose all: PostgreSQL holds the truth."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class StreamUnavailable(Exception):
    """The stream cannot be reached or refused; what it would have carried is in PostgreSQL."""


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A decision on its way to the dispatcher that holds the cluster's session."""

    cluster: str
    number: int
    """The decision's number within its cluster, from 1 and dense."""
    payload: bytes | None
    """None, and only from `read`: something unreadable was here and has been taken out.

    Its number is then that of the last readable entry before it, or the reader's own
    position: a reader that simply moves on to `number` stays where it is. It should look
    in PostgreSQL for what comes after that.
    """


class DecisionStream(Protocol):
    """One ordered stream per cluster, bounded, refilled from nowhere."""

    async def publish(self, entries: Sequence[StreamEntry]) -> None:
        """Append, ascending in number per cluster; a late or repeated entry is left out.

        Raises StreamUnavailable when some entries may be missing, within about two seconds;
        publishing all of them again is harmless.
        """
        ...

    async def read(self, positions: Mapping[str, int], wait_ms: int) -> list[StreamEntry]:
        """What follows `positions` (cluster to number; 0 is the beginning), ascending per cluster.

        Waits up to `wait_ms` for the first entry when there is none (0 or less: does not wait)
        and returns a bounded batch. Numbers may be missing. Raises StreamUnavailable.
        """
        ...

    async def drop(self, cluster: str) -> None:
        """Forget a cluster's stream; raises StreamUnavailable."""
        ...


class Hints(Protocol):
    """Wake-ups by topic. Any may be lost, so a slow poll stands behind each."""

    async def notify(self, topic: str) -> None:
        """Wake the topic's subscribers, if that can be done quickly; never raises."""
        ...

    def subscribe(self, *topics: str) -> AsyncIterator[str]:
        """Topics as they are notified, for ever, over reconnects.

        Each topic comes once after every connect or reconnect too: a hint may have been
        lost meanwhile.
        """
        ...
