"""What queues may still be promised: a guarantee is charged to quota when it is given."""

import numpy as np

from atoll.core.model.ids import QueueName
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.state.limits import ALL_KINDS
from atoll.core.state.mig import UNITS_PER_BLOCK
from atoll.core.state.queue_tree import ROOT
from atoll.core.state.shares import DEVICES
from atoll.core.state.snapshot import Snapshot

UNITS_PER_DEVICE = BLOCKS_PER_DEVICE * UNITS_PER_BLOCK


class QuotaLeft:
    """Limits and deserved shares of a snapshot, less what is promised on top."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._kinds, self._limits = snapshot.kinds, snapshot.limits
        self._shares = snapshot.shares
        self._room = snapshot.limits.limit - snapshot.limits.used
        deserved = snapshot.shares.deserved
        held = snapshot.shares.held[:, DEVICES : DEVICES + deserved.shape[1]]
        self._left = deserved - np.pad(held, ((0, 0), (0, deserved.shape[1] - held.shape[1])))

    def fits_limits(self, queue: QueueName, kind: str, devices: int) -> bool:
        """Charge the limits of the queue and all above it; False, and nothing: one is too low."""
        units, limits = devices * UNITS_PER_DEVICE, self._bound(queue, kind)
        if any(self._room[n] < units for n in limits):
            return False
        self._room[limits] -= units
        return True

    def take(self, queue: QueueName, kind: str, devices: int) -> bool:
        """Charge the queue and all above it; False, and nothing, if it is outside quota then.

        Where no queue was given a deserved share there is no quota, and only limits count.
        """
        units, number = devices * UNITS_PER_DEVICE, self._kinds.get(kind, ALL_KINDS)
        limits = self._bound(queue, kind)
        if any(self._room[n] < units for n in limits):
            return False
        chain = self._chain(queue)
        if self._shares.deserved.any() and not self._inside(chain, number, units):
            return False
        self._room[limits] -= units
        if 0 <= number < self._left.shape[1]:
            self._left[chain, number] -= units
        return True

    def _bound(self, queue: QueueName, kind: str) -> list[int]:
        both = (ALL_KINDS, self._kinds.get(kind, ALL_KINDS))
        return [n for n in self._limits.of(queue) if self._limits.kind[n] in both]

    def _inside(self, chain: list[int], kind: int, units: int) -> bool:
        # The nearest queue that deserves anything of the kind decides, as for reclaims.
        deserved = self._shares.deserved
        if not 0 <= kind < deserved.shape[1]:
            return False
        own = next((v for v in chain if deserved[v, kind] > 0), ROOT)
        return own != ROOT and bool(self._left[own, kind] >= units)

    def _chain(self, queue: QueueName) -> list[int]:
        vertex, chain = self._shares.vertex(queue), []
        while vertex != ROOT:
            chain.append(vertex)
            vertex = int(self._shares.parent[vertex])
        return chain
