"""Why a booking cannot be had."""

from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.reservation import CandidateWindow, Obstacle


class BookingRefused(FailedPrecondition):
    """What stands in the way of a booking, and the nearest windows that could be had."""

    def __init__(
        self,
        message: str,
        *,
        start_at: float,
        obstacles: tuple[Obstacle, ...] = (),
        alternatives: tuple[CandidateWindow, ...] = (),
    ) -> None:
        """`start_at`: of the occurrence that cannot be had, unix seconds."""
        super().__init__(message, code=ErrorCode.BOOKING_REFUSED)
        self.start_at = start_at
        self.obstacles = obstacles
        """The largest first."""
        self.alternatives = alternatives
