"""The session lease: what this agent may believe about being heard.

The last contact is the time of SENDING the last heartbeat that was answered: by
then at the latest the control plane heard of us, and it counts our silence from
a time that is not earlier.
"""

from typing import Final

from atoll.ports.clock import Clock

DRIFT: Final = 0.02
"""Share of the lease given up, as two machines' clocks do not run at the same rate."""


class Lease:
    """Valid or not, by the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._valid_until = 0.0

    def contact(self, sent_at: float, lease_s: float) -> None:
        """A heartbeat sent at `sent_at` (monotonic) was answered."""
        self._valid_until = max(self._valid_until, sent_at + lease_s * (1.0 - DRIFT))

    def end(self) -> None:
        """Somebody else may hold the cluster now: start nothing more."""
        self._valid_until = 0.0

    def valid(self) -> bool:
        """Whether anything may be started."""
        return self._clock.monotonic() < self._valid_until
