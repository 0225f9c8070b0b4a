"""The tightest place first: broken devices before whole ones, used nodes before empty ones."""

import numpy as np

from atoll.core.policies.interfaces import FORMS, TERMS, Loss, Term, Weights


class BestFit:
    """Weights that compare term by term, the most important first.

    A task without devices stays off nodes with devices. A share breaks no device
    while a broken one fits, and takes the one that it fills best; a slice goes where
    it costs other profiles least. Then a node with few free devices is taken before
    one with many, and the fuller one of equals.
    """

    gathers = True
    loss = Loss()

    def weights(self, *, known: int) -> Weights:
        """CPU and memory together stay below 2^11, free devices below 2^6, blocks below 2^7."""
        del known
        weights = np.zeros((FORMS, TERMS), np.int64)
        weights[:, Term.CPU_LEFT] = 1
        weights[:, Term.MEMORY_LEFT] = 1
        weights[:, Term.DEVICES_LEFT] = 1 << 11
        weights[:, Term.BLOCKS_LEFT] = 1 << 17
        weights[:, Term.SLICES_LOST] = 1 << 24
        weights[:, Term.DEVICES_BROKEN] = 1 << 25
        weights[:, Term.DEVICES_IDLE] = 1 << 20
        return weights
