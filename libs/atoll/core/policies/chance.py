"""Any node that fits: what the others are compared with."""

import numpy as np

from atoll.core.policies.interfaces import FORMS, TERMS, Loss, Term, Weights


class Random:
    """By chance, from the generator of the cycle: the same seed gives the same plan."""

    gathers = False
    loss = Loss()

    def weights(self, *, known: int) -> Weights:
        """Chance alone."""
        del known
        weights = np.zeros((FORMS, TERMS), np.int64)
        weights[:, Term.CHANCE] = 1
        return weights
