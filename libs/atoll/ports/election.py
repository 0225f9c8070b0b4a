"""One leader among several processes, with a number that fences it.

Leadership is never certain: a process can be paused between a look at `valid`
and its next write. What makes it safe is the epoch, checked inside the
committing transaction; `valid` and `lost` only keep a deposed leader from
wasting work.
"""

from typing import Protocol

from atoll.core.model.ids import Epoch


class ElectionUnavailable(Exception):
    """The election service cannot be reached or refused; try again later."""


class Leadership(Protocol):
    """A won election, until it is lost for good."""

    @property
    def epoch(self) -> Epoch:
        """Greater than every earlier leader's of the same election."""
        ...

    def valid(self) -> bool:
        """Whether the lease cannot have run out yet, by the monotonic clock.

        True while now < the time of sending the last answered keepalive + ttl - margin.
        Once False it stays False.
        """
        ...

    async def lost(self) -> None:
        """Return when leadership is lost or its validity ran out.

        That is before the lease can have expired, unless somebody else revoked
        it: then it is within a third of the ttl.
        """
        ...

    async def resign(self) -> None:
        """Give leadership up at once; never raises. The successor need not wait for the ttl."""
        ...


class Election(Protocol):
    """A candidacy of one process in one election."""

    async def campaign(self) -> Leadership:
        """Wait as a hot standby until elected, through outages of the election service.

        Raises ElectionUnavailable only if the service refuses for good, as with wrong
        credentials. May be called again after the leadership was lost.
        """
        ...

    async def leader(self) -> str | None:
        """The identity of the present leader, or None; raises ElectionUnavailable."""
        ...

    async def close(self) -> None:
        """Withdraw, resigning if elected, and free the connections."""
        ...
