"""Many jobs as few rows: those that nearly are alike become one row that stands for all of them.

What is drawn for such a row is drawn for each of its jobs, all at once: by a multinomial draw of
how many are gone by when.
"""

from typing import Final

import numpy as np

from atoll.core.engine.burst.demand.series import STEP_S, Floats, Ints, Jobs
from atoll.core.engine.burst.demand.survival import GRID

MOST: Final = 20_000
"""Jobs that are taken one by one."""


def compacted(jobs: Jobs, most: int = MOST) -> Jobs:
    """As they are, or, if there are more, one row for those that nearly are alike.

    Alike are jobs of one size, band of run time and step of their submit; a row has their means.
    """
    if len(jobs.amount) <= most:
        return jobs
    table = np.stack([
        jobs.over.astype(float),
        jobs.amount,
        jobs.age_s // STEP_S,
        np.searchsorted(GRID, jobs.ran_s, side="right").astype(float),
    ])
    _, row, many = np.unique(table, axis=1, return_inverse=True, return_counts=True)
    row, first = row.ravel(), np.zeros(len(many), dtype=np.int64)
    first[row] = np.arange(len(row))
    return Jobs(
        jobs.amount[first],
        np.bincount(row, weights=jobs.age_s) / many,
        np.bincount(row, weights=jobs.ran_s) / many,
        jobs.over[first],
        many.astype(np.int64),
    )


def merged(jobs: Jobs) -> Jobs:
    """Rows that differ in nothing but their age as one."""
    table = np.stack([jobs.amount, jobs.ran_s, jobs.over.astype(float)])
    found, row = np.unique(table, axis=1, return_inverse=True)
    row = row.ravel()
    count = jobs.counts
    many = np.bincount(row, weights=count).astype(np.int64)
    age = np.bincount(row, weights=jobs.age_s * count) / np.maximum(many, 1)
    return Jobs(found[0], age, found[1], found[2] > 0, many)


def left_of(many: Ints, stay: Floats, *, draw: np.random.Generator, runs: int) -> Floats:
    """(runs, J, H) of `many` (J) jobs how many are there at each step, by their chances (J, H)."""
    gone = -np.diff(stay, axis=1, prepend=1.0)
    chances = np.clip(np.concatenate([gone, stay[:, -1:]], axis=1), 0.0, 1.0)
    chances /= chances.sum(axis=1, keepdims=True)
    drawn = draw.multinomial(many, chances, size=(runs, len(many)))
    left = many[None, :, None] - np.cumsum(drawn, axis=2)[:, :, :-1]
    return np.asarray(left, dtype=float)
