"""The place where typical tasks lose least: our own way to pack shares of devices.

It began as FGD (ATC'23) and keeps its idea, that a node is judged by what the
workload could still do with it, but asks another question: not what cannot be used
now, but what will be left of each device once tasks like those of the workload have
filled it, one after another. To that come devices that free CPU could not feed, and,
the scarcer CPU is in the workload, the more of its price, and fragments as of FGD.
The constants were found by search on seeds of the openb traces that no result uses.
"""

from typing import Final

import numpy as np

from atoll.core.policies.best_fit import BestFit
from atoll.core.policies.interfaces import FORMS, TERMS, Loss, Strand, Term, Weights
from atoll.core.state.columns import FORM_SLICES

LEAST_KNOWN: Final = 256
"""Tasks: a workload of fewer says little of what will come."""


class LeastLoss:
    """Least growth of the loss; of equals the fullest node."""

    gathers = True
    loss = Loss(
        strand=Strand(10_130, weight=2.13),
        holes=5.0,
        patience=0.161,
        evenness=0.376,
        keenness=0.0085,
        wholes=0.0,
        feeding=0.177,
        opening=0.39,
        openness=0.288,
        quantum=0.13,
        scarce_from=0.9,
        scarce_to=1.0,
        scarce_fragments=0.3,
        scarce_strand=Strand(20_000, weight=0.3),
    )

    def weights(self, *, known: int) -> Weights:
        """Ties stay below 2^14; slices are placed as by best fit, which knows their F.

        So is everything while too little is known of the workload to bet on it.
        """
        if known < LEAST_KNOWN:
            return BestFit().weights(known=known)
        weights = np.zeros((FORMS, TERMS), np.int64)
        weights[:, Term.LOSS] = 1 << 14
        weights[:, Term.NODE_LEFT] = 1
        weights[:, Term.CPU_LEFT] = 1
        weights[:, Term.MEMORY_LEFT] = 1
        weights[:, Term.DEVICES_IDLE] = 16
        weights[FORM_SLICES] = BestFit().weights(known=known)[FORM_SLICES]
        return weights
