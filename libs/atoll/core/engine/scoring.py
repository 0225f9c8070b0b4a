"""Puts together what the score kernels need."""

import numpy as np
from numpy.random import Generator

from atoll.core.engine.loss_tables import loss_tables
from atoll.core.engine.score_kernels import Rules, Scoring
from atoll.core.policies.interfaces import Score, Term
from atoll.core.state.columns import Shapes
from atoll.core.state.fit_kernels import VIEW_ROWS, Devices
from atoll.core.state.snapshot import Snapshot

LEAST_SHARES = 1024
SLICES_PER_DEVICE = 8
MOST_SEED = 1 << 31


def scoring_for(
    snapshot: Snapshot, shapes: Shapes, score: Score, *, rng: Generator | None = None
) -> Scoring:
    """Scores of some shapes on a snapshot's hardware; `rng` for policies that play by chance."""
    room = max(LEAST_SHARES, SLICES_PER_DEVICE * snapshot.nodes.model.shape[1])
    out = Devices(*(np.zeros(room, np.int64) for _ in range(3)))
    wide = (VIEW_ROWS, snapshot.nodes.model.shape[1])
    seen, trial = np.zeros(wide, np.int64), np.zeros(wide, np.int64)
    models, cuts = snapshot.hardware
    return Scoring(models, cuts, shapes, _rules(snapshot, score, rng), seen, trial, out)


def _rules(snapshot: Snapshot, score: Score, rng: Generator | None) -> Rules:
    weights = score.weights(known=int(snapshot.typical.number.sum()))
    seed = 0
    if weights[:, Term.CHANCE].any():
        seed = 1 if rng is None else int(rng.integers(1, MOST_SEED))
    tables = loss_tables(snapshot.typical, score.loss)
    return Rules(weights, tables, np.array([seed], np.int64))
