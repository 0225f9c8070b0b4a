"""Fragmentation gradient descent, as published (Weng et al., USENIX ATC'23)."""

import numpy as np

from atoll.core.policies.best_fit import BestFit
from atoll.core.policies.interfaces import FORMS, TERMS, Loss, Term, Weights
from atoll.core.state.columns import FORM_SLICES


class FragmentationGradient:
    """The smallest growth of F over typical tasks, through their sigmoid; ties by node."""

    gathers = True
    loss = Loss(fragments=1.0)

    def weights(self, *, known: int) -> Weights:
        """Slices are not theirs: they are placed as by best fit."""
        weights = np.zeros((FORMS, TERMS), np.int64)
        weights[:, Term.LOSS_SQUASHED] = 1
        weights[FORM_SLICES] = BestFit().weights(known=known)[FORM_SLICES]
        return weights
