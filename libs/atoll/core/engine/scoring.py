"""Puts together what the score kernels need."""

import numpy as np

from atoll.core.engine.score_kernels import Scoring
from atoll.core.policies.interfaces import Weights
from atoll.core.state.columns import Shapes
from atoll.core.state.fit_kernels import VIEW_ROWS, Devices
from atoll.core.state.snapshot import Snapshot

LEAST_SHARES = 1024
SLICES_PER_DEVICE = 8


def scoring_for(snapshot: Snapshot, shapes: Shapes, weights: Weights) -> Scoring:
    """Scores of some shapes on a snapshot's hardware."""
    room = max(LEAST_SHARES, SLICES_PER_DEVICE * snapshot.nodes.model.shape[1])
    out = Devices(*(np.zeros(room, np.int64) for _ in range(3)))
    wide = (VIEW_ROWS, snapshot.nodes.model.shape[1])
    seen, trial = np.zeros(wide, np.int64), np.zeros(wide, np.int64)
    models, cuts = snapshot.hardware
    return Scoring(models, cuts, shapes, weights, seen, trial, out)
