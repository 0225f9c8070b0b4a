"""Short transactions of one user's change: tried again on contention, and told of afterwards."""

from collections.abc import Awaitable, Callable

from atoll.ports.clock import Clock, Ids
from atoll.ports.notify import Notifier
from atoll.ports.store.retry import retrying
from atoll.ports.store.submission import SubmissionStore, SubmissionTx


class Transactions:
    """Runs changes, each in a transaction of its own."""

    def __init__(
        self, store: SubmissionStore, *, notifier: Notifier, clock: Clock, ids: Ids
    ) -> None:
        self.store = store
        self._notifier = notifier
        self._clock = clock
        self._ids = ids

    async def run(self, change: Callable[[SubmissionTx], Awaitable[None]]) -> None:
        """Commit what `change` does, which may run several times; what it raises undoes it."""

        async def once() -> None:
            async with self.store.begin() as tx:
                await change(tx)

        await retrying(once, clock=self._clock, ids=self._ids)
        self._notifier.ring()
