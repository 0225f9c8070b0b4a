"""Hours and months in which money is counted: UTC, as unix seconds of their beginning."""

from datetime import UTC, datetime
from typing import Final

HOUR_S: Final = 3600


def hour_of(at: float) -> int:
    """The full hour that a time belongs to."""
    return int(at // HOUR_S) * HOUR_S


def month_of(at: float) -> int:
    """The first of the month that a time belongs to."""
    day = datetime.fromtimestamp(at, tz=UTC)
    return int(datetime(day.year, day.month, 1, tzinfo=UTC).timestamp())
