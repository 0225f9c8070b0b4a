"""Compiles the kernels of the rules for spot capacity."""

from atoll.core.engine.burst.expected_cost import ExpectedCost
from atoll.core.engine.burst.spot import Run, Terms
from atoll.core.engine.burst.watch import look


def warm_spot() -> None:
    """Choose once for a small job."""
    terms = Terms(1200.0, 3600.0, 60.0, 600.0, on_demand_per_h=3.0, spot_per_h=1.0)
    ExpectedCost().choose(Run(terms.work_s), look(None, (True,), terms.tick_s), terms)
