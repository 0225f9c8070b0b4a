"""What of our own devices is idle, so that rented work may return home, and who has come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.burst.usecases.follower import Follower
from atoll.core.engine.burst.broker.ground import NO_USE, Use
from atoll.core.model.burst import Instance, InstanceId
from atoll.core.model.burst_rules import Policies
from atoll.core.model.burst_wants import Want
from atoll.ports.store.burst import BurstStore

READ_EVERY_S: Final = 30.0


@dataclass(slots=True)
class Busy:
    """As of the last look."""

    follower: Follower
    spare: Mapping[str, int] = field(default_factory=dict)
    """Devices by kind that are idle, not rented, and that nobody waits for."""
    came: int = 0
    """Jobs of queues that may rent that were submitted since the look before."""
    _looked_at: float = 0.0

    async def look(
        self,
        store: BurstStore,
        rows: Sequence[Instance],
        wants: Sequence[Want],
        *,
        uses: Mapping[InstanceId, Use],
        policies: Policies,
        now: float,
    ) -> None:
        """Only while something runs on what is rented, or wants to, and seldom.

        In between nothing counts as idle: it may have been given away already.
        """
        self.spare, self.came = {}, 0
        since = self._looked_at or now
        due = not self._looked_at or not 0 <= now - since < READ_EVERY_S
        if due and (wants or any(uses.get(row.id, NO_USE).live for row in rows)):
            table = await self.follower.follow(store, now=now)
            self._looked_at = now
            self.came = table.came(since, policies)
            self.spare = table.standing.spare(await store.capacities(), rows)
