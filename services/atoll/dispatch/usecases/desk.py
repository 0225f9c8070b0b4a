"""The requests for output that are open in one session."""

from atoll.core.model.errors import ErrorCode, Unavailable
from atoll.core.model.ids import ClusterName
from atoll.dispatch.usecases.outbox import LogOrder, Outbox
from atoll.dispatch.usecases.relay import Chunk, Relay


class LogDesk:
    """Gives requests their numbers, and chunks to whoever asked for them."""

    def __init__(self, cluster: ClusterName, outbox: Outbox) -> None:
        self._cluster = cluster
        self._outbox = outbox
        self._open: dict[int, tuple[Relay, int]] = {}
        self._last = 0
        self.relays: set[Relay] = set()

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, relay: Relay, rank: int) -> int:
        """A number for a new request."""
        self._last += 1
        self._open[self._last] = (relay, rank)
        return self._last

    def send(self, order: LogOrder) -> None:
        """Tell the agent."""
        self._outbox.log(order)

    def forget(self, request: int) -> None:
        """Drop what still comes under this number."""
        self._open.pop(request, None)

    def take(self, chunk: Chunk) -> None:
        """Hand a chunk to its reader; nobody may want it any more."""
        found = self._open.get(chunk.request)
        if found is not None:
            relay, rank = found
            relay.take(rank, chunk)

    def fail(self) -> None:
        """The session is over."""
        for relay in tuple(self.relays):
            relay.fail(unreachable(self._cluster, ""))


def unreachable(cluster: ClusterName, holder: str) -> Unavailable:
    """What a reader gets that asked the wrong replica; `holder` is the right one, if any."""
    where = f"its session is held by {holder}" if holder else "nobody holds its session"
    return Unavailable(
        f"the agent of {cluster} cannot be reached here: {where}",
        code=ErrorCode.AGENT_UNREACHABLE,
        metadata={"holder": holder},
    )
