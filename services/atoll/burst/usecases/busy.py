"""What of our own devices is idle, so that rented work may return home, and who has come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.core.engine.burst.broker.ground import NO_USE, Use
from atoll.core.model.burst import Instance, InstanceId
from atoll.core.model.burst_wants import Want
from atoll.ports.store.burst import BurstStore, Capacity, DemandRow

READ_EVERY_S: Final = 30.0


@dataclass(slots=True)
class Busy:
    """As of the last look."""

    spare: Mapping[str, int] = field(default_factory=dict)
    """Devices by kind that are idle, not rented, and that nobody waits for."""
    came: int = 0
    """Jobs that were submitted since the look before."""
    _looked_at: float = 0.0

    async def look(
        self,
        store: BurstStore,
        rows: Sequence[Instance],
        wants: Sequence[Want],
        *,
        uses: Mapping[InstanceId, Use],
        now: float,
    ) -> None:
        """Jobs are read only while something runs on what is rented, or wants to, and seldom.

        In between nothing counts as idle: it may have been given away already.
        """
        self.spare, self.came = {}, 0
        since = self._looked_at or now
        due = not self._looked_at or not 0 <= now - since < READ_EVERY_S
        if due and (wants or any(uses.get(row.id, NO_USE).live for row in rows)):
            self._looked_at = now
            jobs = [each for each in await store.demand(since=now) if not each.ended_at]
            self.came = sum(each.submitted_at > since for each in jobs)
            self.spare = spare_of(await store.capacities(), jobs, rows)


def spare_of(
    capacities: Sequence[Capacity], jobs: Sequence[DemandRow], rows: Sequence[Instance]
) -> dict[str, int]:
    """Whole devices by kind; none of a kind for which anything waits."""
    rented = {row.cluster for row in rows}
    left: dict[str, float] = {}
    for each in capacities:
        if not each.rented and each.kind:
            left[each.kind] = left.get(each.kind, 0.0) + each.devices
    for job in jobs:
        if job.started_at and job.cluster not in rented:
            left[job.kind] = left.get(job.kind, 0.0) - job.devices
    waited_for = {job.kind for job in jobs if not job.started_at and not job.waits}
    return {kind: int(n) for kind, n in left.items() if n >= 1 and kind not in waited_for}
