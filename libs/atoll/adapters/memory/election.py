"""Elections of one process: the rules of the real ones on any clock, and their faults."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from atoll.adapters.memory.signal import Signal
from atoll.core.model.ids import Epoch
from atoll.ports.clock import Clock
from atoll.ports.election import ElectionUnavailable

MARGIN: Final = 0.1
"""Share of the ttl by which a holder gives up before its lease can end."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A key and its lease, renewed without a pause for as long as the service is reached."""

    election: str
    identity: str
    revision: int
    ttl_s: float
    lost: bool = False
    silent_since: float | None = None
    """The monotonic time after which no renewal was answered."""
    fading: "asyncio.Task[None] | None" = None

    def valid_at(self, now: float) -> bool:
        """Whether its holder may believe in it."""
        return not self.lost and (
            self.silent_since is None or now < self.silent_since + self.ttl_s * (1 - MARGIN)
        )


class MemoryElections:
    """What etcd is to the real ones: shared by all candidates of a process.

    `cut` and `heal` separate one identity from the service, `stop` and `resume` take
    the service down for all, `revoke` ends healthy leases.
    """

    def __init__(self, clock: Clock) -> None:
        self.generation = 0
        self.clock = clock
        self.changed = Signal()
        self._revision = 0
        self._queues: defaultdict[str, list[Candidate]] = defaultdict(list)
        self._cut: set[str] = set()
        self._up = True

    def cut(self, identity: str) -> None:
        """Nothing of `identity` arrives any more, as when its process was killed."""
        self._cut.add(identity)
        self._reconsider()

    def heal(self, identity: str) -> None:
        """Let `identity` through again; what it lost meanwhile stays lost."""
        self._cut.discard(identity)
        self._reconsider()

    def stop(self) -> None:
        """The service answers nobody; while it is down no lease ends either."""
        self._up = False
        self._reconsider()

    def resume(self) -> None:
        """The service is back."""
        self._up = True
        self._reconsider()

    def revoke(self, identity: str) -> None:
        """End the leases of `identity` though they are healthy."""
        for candidate in self._all():
            if candidate.identity == identity:
                self.remove(candidate)

    def reaches(self, identity: str) -> bool:
        """Whether `identity` and the service hear each other."""
        return self._up and identity not in self._cut

    def enter(self, election: str, identity: str, ttl_s: float) -> Candidate:
        """Stand in line."""
        self._revision += 1
        candidate = Candidate(election, identity, self._revision, ttl_s)
        self._queues[election].append(candidate)
        return candidate

    def first(self, election: str) -> Candidate | None:
        """Who has waited longest."""
        return next(iter(self._queues[election]), None)

    def remove(self, candidate: Candidate) -> None:
        """Out of the line: whoever is first then leads."""
        candidate.lost = True
        if candidate.fading is not None:
            candidate.fading.cancel()
        if candidate in self._queues[candidate.election]:
            self._queues[candidate.election].remove(candidate)
        self.changed.fire()

    def _all(self) -> Iterator[Candidate]:
        yield from [candidate for queue in self._queues.values() for candidate in queue]

    def _reconsider(self) -> None:
        for candidate in self._all():
            if not self.reaches(candidate.identity):
                self._fade(candidate)
            elif candidate.fading is not None and not candidate.lost:
                candidate.fading.cancel()
                candidate.fading = candidate.silent_since = None
        self.changed.fire()

    def _fade(self, candidate: Candidate) -> None:
        if candidate.fading is None:
            candidate.silent_since = self.clock.monotonic()
            candidate.fading = asyncio.ensure_future(self._run_out(candidate))

    async def _run_out(self, candidate: Candidate) -> None:
        """First the holder gives up, then the lease ends, unless the service is down."""
        await self.clock.sleep(candidate.ttl_s * (1 - MARGIN))
        candidate.lost = True
        self.changed.fire()
        await self.clock.sleep(candidate.ttl_s * MARGIN)
        await self.changed.wait(lambda: self._up)
        self.remove(candidate)


class MemoryLeadership:
    """A won election."""

    def __init__(self, elections: MemoryElections, candidate: Candidate) -> None:
        self._elections = elections
        self._candidate = candidate
        self._epoch = Epoch(elections.generation, candidate.revision)

    @property
    def epoch(self) -> Epoch:
        """(generation, number of the candidacy)."""
        return self._epoch

    def valid(self) -> bool:
        """Whether the lease cannot have run out yet."""
        return self._candidate.valid_at(self._elections.clock.monotonic())

    async def lost(self) -> None:
        """Return when leadership is lost or its validity ran out."""
        await self._elections.changed.wait(lambda: not self.valid())

    async def resign(self) -> None:
        """Give leadership up; the service hears of it if it can be reached."""
        self._candidate.lost = True
        self._elections.changed.fire()
        if self._elections.reaches(self._candidate.identity):
            self._elections.remove(self._candidate)


class MemoryElection:
    """The candidacy of `identity` in the election `prefix`."""

    def __init__(
        self, elections: MemoryElections, *, prefix: str, identity: str, ttl_s: float
    ) -> None:
        self._elections = elections
        self._prefix = prefix
        self._identity = identity
        self._ttl_s = ttl_s
        self._leadership: MemoryLeadership | None = None

    async def campaign(self) -> MemoryLeadership:
        """Wait until elected."""
        await self.close()
        while True:
            await self._elections.changed.wait(lambda: self._elections.reaches(self._identity))
            candidate = self._elections.enter(self._prefix, self._identity, self._ttl_s)
            if await self._wins(candidate):
                self._leadership = MemoryLeadership(self._elections, candidate)
                return self._leadership

    async def leader(self) -> str | None:
        """The identity of the present leader; raises ElectionUnavailable."""
        if not self._elections.reaches(self._identity):
            raise ElectionUnavailable("the elections cannot be reached")
        first = self._elections.first(self._prefix)
        return first.identity if first else None

    async def close(self) -> None:
        """Resign if elected."""
        if self._leadership is not None:
            await self._leadership.resign()
            self._leadership = None

    async def _wins(self, candidate: Candidate) -> bool:
        elections = self._elections
        try:
            await elections.changed.wait(
                lambda: (
                    candidate.lost
                    or (
                        elections.first(self._prefix) is candidate
                        and elections.reaches(self._identity)
                    )
                )
            )
        except BaseException:
            elections.remove(candidate)
            raise
        return not candidate.lost
