"""What the leader tells other replicas of itself: providers, and when it looks again."""

import json
import math
from dataclasses import asdict, dataclass
from typing import Final

from atoll.burst.usecases.desk import Health

KEPT_AS: Final = "status"


@dataclass(frozen=True, slots=True)
class LeaderStatus:
    """Of the leader, as it was written last."""

    next_at: float = 0.0
    every_s: float = 0.0
    """Time from there to the look after it."""
    providers: tuple[Health, ...] = ()

    def next_after(self, now: float) -> float:
        """When it looks again, as far as can be told of what was written a while ago."""
        if self.every_s <= 0 or self.next_at >= now:
            return self.next_at
        return self.next_at + math.ceil((now - self.next_at) / self.every_s) * self.every_s


def status_to_bytes(status: LeaderStatus) -> bytes:
    """For the store."""
    return json.dumps(asdict(status)).encode()


def status_from_bytes(kept: bytes | None) -> LeaderStatus:
    """What was written; an empty one for what cannot be read."""
    try:
        told = json.loads(kept or b"{}")
        found = tuple(Health(**each) for each in told.get("providers", ()))
        return LeaderStatus(float(told["next_at"]), float(told["every_s"]), found)
    except (ValueError, TypeError, KeyError, AttributeError):
        return LeaderStatus()
