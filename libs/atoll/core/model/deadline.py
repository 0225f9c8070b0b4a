"""What a job with a deadline is told when it is submitted."""

import enum
from dataclasses import dataclass
from typing import Final

from atoll.core.model.ids import ClusterName

NOWHERE: Final = ClusterName("")


class Chance(enum.StrEnum):
    """Whether it meets its deadline."""

    GUARANTEED = "guaranteed"
    """Unless nodes are lost or its owner ends it."""
    LIKELY = "likely"
    """It could by itself, but what is promised to others is in its way now."""
    CANNOT = "cannot"
    """Not even alone on all devices."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The admission answer. Times are unix seconds."""

    chance: Chance
    earliest_at: float = 0.0
    """By when it could be done; 0: nobody can say."""
    cluster: ClusterName = NOWHERE
    """Where it could be."""
    why: str = ""
    """Why it is not guaranteed."""
