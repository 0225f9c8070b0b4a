"""The node whose free resources are most like what is asked: the dot product of both."""

import numpy as np

from atoll.core.policies.interfaces import FORMS, TERMS, Loss, Term, Weights


class DotProduct:
    """The largest dot product first, in shares of the node's capacity."""

    gathers = False
    loss = Loss()

    def weights(self, *, known: int) -> Weights:
        """Alignment alone; ties by node."""
        del known
        weights = np.zeros((FORMS, TERMS), np.int64)
        weights[:, Term.ALIGNED] = -1
        return weights
