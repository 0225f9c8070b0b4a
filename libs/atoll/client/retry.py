"""When a call is made again: only if a repeated one cannot do harm, a few times, spread out."""

from collections.abc import Sequence
from typing import Final

from atoll.client.calls import BURST, PLACEMENT, RESERVATION, SUBMISSION
from atoll.client.config import ClientConfig
from atoll.core.model.errors import ErrorCode, Unavailable

TRIES: Final = 5
FIRST_S: Final = 0.1
MOST_S: Final = 2.0


def delay_s(tries: int, jitter: float) -> float:
    """Seconds to wait after `tries` failures; `jitter` in [0, 1) spreads callers out."""
    return float(min(MOST_S, FIRST_S * 2 ** min(tries - 1, 16)) * (0.5 + jitter / 2))


def worth_another_try(error: Exception, *, repeatable: bool, tries: int) -> bool:
    """True when the call may be made again after `tries` failures."""
    if not isinstance(error, Unavailable) or tries >= TRIES:
        return False
    # A replica that does not lead has done nothing, whatever was asked.
    return error.code is ErrorCode.NOT_LEADER or (
        repeatable and error.code is ErrorCode.UNAVAILABLE
    )


class Targets:
    """Which of several replicas to ask: the leader when it is known, the others in turn."""

    def __init__(self, addresses: Sequence[str], *, setting: str) -> None:
        self._addresses = list(addresses)
        self._setting = setting
        self._next = 0
        self._leader = ""

    def current(self) -> str:
        """The address to ask now; Unavailable when none is known."""
        if not self._addresses:
            raise Unavailable(
                f"no address is known to ask; set {self._setting}",
                code=ErrorCode.UNAVAILABLE,
                metadata={"setting": self._setting},
            )
        return self._leader or self._addresses[self._next % len(self._addresses)]

    def failed(self, error: Exception) -> bool:
        """Learn from a failure; True when it told whom to ask instead, at once."""
        leader = ""
        if isinstance(error, Unavailable) and error.code is ErrorCode.NOT_LEADER:
            leader = error.metadata.get("leader", "")
        named = bool(leader) and leader != self.current()
        if not named:
            self._next += 1
        self._leader = leader if named else ""
        return named


def targets_of(config: ClientConfig) -> dict[str, Targets]:
    """Whom to ask, by service; several replicas of SubmissionService are comma separated."""
    replicas = [text for part in config.endpoint.split(",") if (text := part.strip())]
    return {
        SUBMISSION: Targets(replicas, setting="ATOLL_ENDPOINT"),
        PLACEMENT: Targets(config.placement, setting="ATOLL_PLACEMENT"),
        RESERVATION: Targets(config.reservation, setting="ATOLL_RESERVATION"),
        BURST: Targets(config.burst, setting="ATOLL_BURST"),
    }
