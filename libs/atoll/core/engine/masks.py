"""What the filters say, worked out once for all shapes for which it is the same."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.plan import GangRequest
from atoll.core.model.resources import TaskShape
from atoll.core.policies.interfaces import MAY_GO, Policies
from atoll.core.state.snapshot import Snapshot

Key = tuple[Hashable, ...]


@dataclass(slots=True)
class Masks:
    """Where shapes may go at all."""

    snapshot: Snapshot
    policies: Policies
    now: float
    _codes: dict[Key, NDArray[np.int8]] = field(default_factory=dict)
    _masks: dict[Key, NDArray[np.bool_]] = field(default_factory=dict)

    def key(self, request: GangRequest, shape: TaskShape) -> Key:
        """Equal for requests and shapes that may go to the same nodes."""
        return tuple(
            f.key(self.snapshot, request, shape=shape, now=self.now) for f in self.policies.filters
        )

    def refusals(self, request: GangRequest, shape: TaskShape) -> NDArray[np.int8]:
        """(N) by the first filter that refuses: the place of its reason in WHY, else MAY_GO."""
        key = self.key(request, shape)
        if key not in self._codes:
            codes = np.zeros(len(self.snapshot.names), np.int8)
            for each in self.policies.filters:
                new = each.refuses(self.snapshot, request, shape=shape, now=self.now)
                codes = np.where(codes == MAY_GO, new, codes)
            self._codes[key] = codes
        return self._codes[key]

    def allowed(self, request: GangRequest, shape: TaskShape) -> NDArray[np.bool_]:
        """(N) True where all filters let the shape go."""
        key = self.key(request, shape)
        if key not in self._masks:
            self._masks[key] = self.refusals(request, shape) == MAY_GO
        return self._masks[key]
