"""What the filters say, worked out once for all shapes for which it is the same."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.apart import Apart
from atoll.core.model.plan import GangRequest
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import TaskShape
from atoll.core.policies.interfaces import MAY_GO, WHY_NUMBER, Policies
from atoll.core.state.snapshot import Snapshot

Key = tuple[Hashable, ...]
TOO_CLOSE: Final = np.int8(WHY_NUMBER[ReasonCode.ANTI_AFFINITY])


@dataclass(slots=True)
class Masks:
    """Where shapes may go at all."""

    snapshot: Snapshot
    policies: Policies
    now: float
    _codes: dict[Key, NDArray[np.int8]] = field(default_factory=dict)
    _masks: dict[Key, NDArray[np.bool_]] = field(default_factory=dict)
    _apart: Apart = field(init=False)

    def __post_init__(self) -> None:
        self._apart = Apart(self.snapshot)

    def note(self, request: GangRequest, rows: NDArray[np.int64]) -> None:
        """A job was placed on some rows: others may have to keep away from them."""
        self._apart.note(request, rows)

    def key(self, request: GangRequest, shape: TaskShape) -> Key:
        """Equal for requests and shapes that may go to the same nodes."""
        return tuple(
            f.key(self.snapshot, request, shape=shape, now=self.now) for f in self.policies.filters
        )

    def refusals(self, request: GangRequest, shape: TaskShape) -> NDArray[np.int8]:
        """(N) by the first filter that refuses: the place of its reason in WHY, else MAY_GO."""
        key = self.key(request, shape)
        codes = self._filtered(request, shape, key)
        if request.anti_affinity is None:
            return codes
        close = (codes == MAY_GO) & ~self.allowed(request, shape)
        return np.where(close, TOO_CLOSE, codes)

    def allowed(self, request: GangRequest, shape: TaskShape) -> NDArray[np.bool_]:
        """(N) True where all filters let the shape go."""
        key = self.key(request, shape)
        if key not in self._masks:
            self._masks[key] = self._filtered(request, shape, key) == MAY_GO
        return self._apart.narrow(request, self._masks[key])

    def _filtered(self, request: GangRequest, shape: TaskShape, key: Key) -> NDArray[np.int8]:
        if key not in self._codes:
            codes = np.zeros(len(self.snapshot.names), np.int8)
            for each in self.policies.filters:
                new = each.refuses(self.snapshot, request, shape=shape, now=self.now)
                codes = np.where(codes == MAY_GO, new, codes)
            self._codes[key] = codes
        return self._codes[key]
