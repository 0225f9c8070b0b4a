"""Borrowers give way to those who borrow less, when the settings say so.

Of two sibling queues the one that holds more above what it deserves stops borrowed
work for a job of the other, if the larger of the two is strictly smaller afterwards,
the new job counted in.

Why this ends, beside what rights.py says: never more is stopped than starts, of any
kind, and nothing of higher priority; work inside quota is let be, or the new job is
inside the same queue's. So neither work inside quota nor running work by priority is
less afterwards, and when both are the same, so is all that queues hold above the two;
and of what siblings hold too much, the largest first and the root's children first,
there is less.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.rights import Rights
from atoll.core.policies.interfaces import Standing
from atoll.core.state.shares import DEVICES
from atoll.core.state.snapshot import ClassView

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rebalancing:
    """Over one cycle's rights, as they stand when it is asked."""

    rights: Rights
    standing: Standing

    def candidates(self, view: ClassView, amounts: Ints) -> Ints:
        """Slots that might be stopped for a job of a class that takes `amounts` (K)."""
        rights = self.rights
        chain = np.array(rights.chain(view.vertex), np.int64)
        siblings, parent = rights.siblings(view), self.rights.snapshot.shares.parent
        # Of the class's own chain, the one with the same parent.
        own = np.zeros(len(parent), np.int64)
        own[parent[chain[1:]]] = chain[1:]
        ours = self._over(rights.held + amounts)[own[parent[siblings]]]
        theirs = self._over(rights.held)[siblings]
        small = (rights.units <= amounts).all(axis=1) & rights.units.any(axis=1)
        return np.flatnonzero(rights.may_give_way(view) & small & (theirs > ours))

    def accepts(self, view: ClassView, victims: Ints, amounts: Ints) -> bool:
        """Whether all these may be stopped for a job of `amounts` (K)."""
        rights, units = self.rights, self.rights.units[victims]
        if not len(victims) or (units.sum(axis=0) > amounts).any():
            return False
        siblings = rights.siblings(view)[victims]
        held = rights.held.copy()
        np.subtract.at(held, siblings, units)
        return bool((self._over(held) < self._over(rights.held))[siblings].all())

    def _over(self, held: Ints) -> Floats:
        """(V) share of the whole that each queue holds above what it deserves, by its weight."""
        shares = self.rights.snapshot.shares
        above = np.maximum(held - self.rights.deserved, 0) * self._unit
        over: Floats = above.max(axis=1, initial=0.0) / shares.weight
        return over

    @cached_property
    def _unit(self) -> Floats:
        unit, wide = self.standing.unit[DEVICES:], self.rights.held.shape[1]
        return np.pad(unit, (0, wide - len(unit)))
