"""Demand made up for tests."""

import numpy as np

from atoll.core.engine.burst.demand.series import STEP_S, Booked, Demand, Floats, Jobs, Key, no_jobs

KEY = Key("research", "H100")


def jobs_of(*rows: tuple[float, float, float, bool]) -> Jobs:
    """Of (amount, age_s, ran_s, over)."""
    amount, age, ran, over = zip(*rows, strict=True)
    return Jobs(np.array(amount), np.array(age), np.array(ran), np.array(over, dtype=bool))


def ended(run_s: Floats, *, amount: float = 1.0, age_s: float = 86400.0) -> Jobs:
    many = len(run_s)
    return Jobs(np.full(many, amount), np.full(many, age_s), run_s, np.ones(many, bool))


def demand_of(
    history: Floats | list[float],
    jobs: Jobs | None = None,
    *,
    key: Key = KEY,
    booked: tuple[Booked, ...] = (),
) -> Demand:
    values = np.asarray(history, dtype=float)
    return Demand(key, STEP_S * len(values), values, jobs or no_jobs(), booked)
