"""Queue limits as they bind one class: how much they leave, and their reasons."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.gangs import UNLIMITED
from atoll.core.engine.sentences import limit_reason
from atoll.core.model.plan import GangRequest
from atoll.core.model.reason import Reason
from atoll.core.model.resources import ANY_KIND
from atoll.core.state.mig import UNITS_PER_BLOCK
from atoll.core.state.snapshot import ClassView, Snapshot


def binding(view: ClassView, snapshot: Snapshot) -> tuple[int, ...]:
    """The limits that bind a class: over all kinds, and of the kinds that it may take."""
    if not view.limits:
        return ()
    kinds = set(_kinds(view.request))
    limited = snapshot.limits.kinds
    return tuple(
        n for n in view.limits if not limited[n] or limited[n] in kinds or ANY_KIND in kinds
    )


def units_left(view: ClassView, snapshot: Snapshot, *, used: NDArray[np.int64]) -> int:
    """What a class may take at most, in 1/56 block.

    The limit of one kind counts when the class takes no other; else only the charge of a
    placement tells whether it holds.
    """
    alone = len(set(_kinds(view.request))) == 1
    limits = snapshot.limits
    left = [
        int(limits.limit[n] - used[n])
        for n in binding(view, snapshot)
        if alone or not limits.kinds[n]
    ]
    return max(0, min(left, default=UNLIMITED))


def limit_reasons(
    view: ClassView, snapshot: Snapshot, *, used: NDArray[np.int64]
) -> tuple[Reason, ...]:
    """The limits that bind a class, the one with the least left first. `used`: in 1/56 block."""
    limits = snapshot.limits
    tightest = sorted(binding(view, snapshot), key=lambda n: (int(limits.limit[n] - used[n]), n))
    return tuple(
        limit_reason(
            limits.queues[n],
            kind=limits.kinds[n],
            used=-(-int(used[n]) // UNITS_PER_BLOCK),
            limit=int(limits.limit[n]) // UNITS_PER_BLOCK,
        )
        for n in tightest
    )


def _kinds(request: GangRequest) -> Iterator[str]:
    for group in request.groups:
        for shape in group.shapes:
            if shape.device is not None and shape.device.count:
                yield shape.device.kind
