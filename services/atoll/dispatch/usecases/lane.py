"""The decisions of one session on their way: read, pushed, acknowledged, always a prefix."""

import enum
from collections import deque
from collections.abc import Iterable
from itertools import islice

from atoll.core.model.messages import Decision


class Offer(enum.Enum):
    """What became of a decision that was read somewhere."""

    TAKEN = enum.auto()
    OLD = enum.auto()
    """It was here already."""
    GAP = enum.auto()
    """Something before it is missing."""
    FULL = enum.auto()
    """Too much is unacknowledged; it will be read again."""


class Lane:
    """`acked <= sent <= read`: journalled by the agent, pushed to it, waiting here.

    At most `window` decisions are between `acked` and `read`, whatever Redis or
    PostgreSQL hold.
    """

    def __init__(self, start: int, *, head: int, window: int) -> None:
        self.acked = self.sent = self.read = start
        self.head = head
        """The highest number known to be committed."""
        self._window = window
        self._waiting: deque[Decision] = deque()
        self._due = 0

    @property
    def room(self) -> int:
        """How many more decisions may be read."""
        return max(0, self._window - (self.read - self.acked))

    @property
    def waiting(self) -> bool:
        """Whether something can be pushed."""
        return bool(self._waiting)

    @property
    def lag(self) -> int:
        """Decisions that the agent has not journalled yet."""
        return max(0, max(self.head, self.read) - self.acked)

    def offer(self, decision: Decision) -> Offer:
        """Take a decision if it is the next one."""
        if decision.number <= self.read:
            return Offer.OLD
        if not self.room:
            return Offer.FULL  # be it the next one or not: what leads up to it may not have fitted
        if decision.number > self.read + 1:
            return Offer.GAP
        self._waiting.append(decision)
        self.read = decision.number
        self.head = max(self.head, self.read)
        return Offer.TAKEN

    def offer_all(self, decisions: Iterable[Decision]) -> int:
        """Take what comes next, in ascending order; how many were taken."""
        return sum(self.offer(decision) is Offer.TAKEN for decision in decisions)

    def peek(self, limit: int) -> tuple[Decision, ...]:
        """The next decisions to push; they stay until `pushed` says so."""
        return tuple(islice(self._waiting, limit))

    def pushed(self, number: int) -> None:
        """All up to `number` are on their way to the agent."""
        while self._waiting and self._waiting[0].number <= number:
            self._waiting.popleft()
        self.sent = max(self.sent, number)

    def acknowledge(self, number: int) -> bool:
        """The agent has journalled all up to `number`; False when it cannot have."""
        if number > self.sent:
            return False
        self.acked = max(self.acked, number)
        return True

    def overdue(self) -> bool:
        """Whether decisions known at the last call, with room for them, are still not here.

        Called regularly. The step between two calls is what Redis gets before
        PostgreSQL is asked instead.
        """
        missing = bool(self.room) and self._due > self.read
        self._due = self.head if self.room else 0
        return missing
