"""Finds places for spans: the same for all of them if that can be, at the least cost to others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.bookings.places import EVERYTHING, LOWEST, Chooser, Place, Spans
from atoll.core.engine.bookings.segment_kernels import View
from atoll.core.engine.bookings.wanted import Pool
from atoll.core.model.reservation import Parts

MOST_COMPARED: Final = 8
"""Pools that are compared by what they cost others."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A place, and by which view it is free."""

    parts: Parts
    view: View
    cost: float = 0.0


def views(floor: int | None) -> tuple[View, ...]:
    """From displacing nothing to all that may be displaced.

    `floor`: bookings below this priority give way; None: none does.
    """
    plain = (EVERYTHING, View(LOWEST, False))
    return plain if floor is None else (*plain, View(floor, False))


class Fitter:
    """Finds places in pools, one of which is enough."""

    def __init__(self, chooser: Chooser, pools: Sequence[Pool]) -> None:
        self._chooser = chooser
        self._pools = pools

    def all(self, spans: Spans, allowed: Sequence[View]) -> list[Fit]:
        """Places by span, as many as there are; fewer than spans when one has none."""
        if len(spans) > 1:
            # Others are moved only for spans that have no place at all without it.
            for view in allowed[:2]:
                place = self.fit(spans, view)
                if place is not None:
                    return [Fit(place.parts, view, place.cost)] * len(spans)
        found: list[Fit] = []
        for span in spans:
            made = self.one(span, allowed)
            if made is None:
                break
            found.append(made)
            if len(spans) > 1:
                self._chooser.prefer(self._chooser.terrain.rows_of(made.parts))
        return found

    def one(self, span: tuple[float, float], allowed: Sequence[View]) -> Fit | None:
        """A place for one span by the first view that has one."""
        for view in allowed:
            place = self.fit([span], view)
            if place is not None:
                return Fit(place.parts, view, place.cost)
        return None

    def fit(self, spans: Spans, view: View) -> Place | None:
        """The best place that is free through all spans."""
        best, tried = None, 0
        for pool in self._ready(spans[0], view):
            place = self._chooser.place(pool, spans, view)
            if place is None:
                continue
            if best is None or place.cost < best.cost:
                best = place
            tried += 1
            if best.cost == 0 or tried == MOST_COMPARED:
                break
        return best

    def _ready(self, span: tuple[float, float], view: View) -> list[Pool]:
        """Pools with enough free of everything, those first that have least of it to spare."""
        pools, chooser = self._pools, self._chooser
        if len(pools) <= 1:
            return list(pools)
        chooser.room(np.concatenate([pool.rows for pool in pools]), [span], view)
        found = []
        for at, pool in enumerate(pools):
            free = [int(chooser.free(need).sum()) for need in pool.needs]
            if all(f >= need.count for f, need in zip(free, pool.needs, strict=True)):
                preferred = any(chooser.preferred(need.rows) for need in pool.needs)
                found.append(((not preferred, not pool.name, free[0], at), pool))
        return [pool for _, pool in sorted(found, key=lambda each: each[0])]
