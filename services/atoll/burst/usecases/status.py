"""What the leader tells other replicas of itself: providers, and when it looks again."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from atoll.burst.usecases.desk import Health

KEPT_AS: Final = "status"


@dataclass(frozen=True, slots=True)
class LeaderStatus:
    """Of the leader, as it was written last."""

    next_at: float = 0.0
    providers: tuple[Health, ...] = ()


def status_to_bytes(next_at: float, providers: Sequence[Health]) -> bytes:
    """For the store."""
    told = {"next_at": next_at, "providers": [asdict(each) for each in providers]}
    return json.dumps(told).encode()


def status_from_bytes(kept: bytes | None) -> LeaderStatus:
    """What was written; an empty one for what cannot be read."""
    try:
        told = json.loads(kept or b"{}")
        found = tuple(Health(**each) for each in told.get("providers", ()))
        return LeaderStatus(float(told.get("next_at", 0.0)), found)
    except (ValueError, TypeError, AttributeError):
        return LeaderStatus()
