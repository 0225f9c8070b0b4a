"""After `warm` no world makes a kernel compile."""

import importlib
import pickle
import pkgutil
import subprocess
import sys

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

import atoll.core
from atoll.core.engine.explain import explain
from atoll.core.engine.timeline.forecast import forecast
from atoll.core.engine.verify import verify
from atoll.core.policies.registry import policies
from tests.core.worlds import (
    Given,
    commit,
    cpus,
    givens,
    planned,
    simple_job,
    simple_world,
    world_of,
)

FRESH_PROCESS = """
import pickle, sys
from atoll.core.engine.kernels import warm
from tests.core.test_warm import compiled, live

warm()
before = compiled()
live(pickle.load(sys.stdin.buffer))
print({name: count for name, count in compiled().items() if count != before[name]})
"""


def compiled() -> dict[str, int]:
    """Signatures by kernel of all of the core."""
    found = pkgutil.walk_packages(atoll.core.__path__, "atoll.core.")
    modules = [importlib.import_module(each.name) for each in found]
    return {
        f"{module.__name__}.{name}": len(value.signatures)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher)
    }


def live(cases: list[Given]) -> None:
    """All that a leader does with worlds."""
    planned(simple_world([], [simple_job(1, cpus(1))]).freeze(1.0))
    for case in cases:
        world = world_of(case)
        for now in (1.0, 2.0):
            made = planned(world.freeze(now), most=3)
            verify(made, world.ledger)
            commit(world, made)
            forecast(world.survey(now), policies(), rng=np.random.default_rng(0))
            world.end_allocations([p.attempt for p in made.placements[:1]])
        snapshot = world.freeze(3.0)
        for job in case.jobs:
            explain(snapshot, job, policies(), now=3.0, ahead=world.jobs_ahead(job))


@given(st.lists(givens(), min_size=15, max_size=15))
@settings(max_examples=1, phases=[Phase.generate])
def test_nothing_that_a_leader_does_makes_a_warm_kernel_compile(cases: list[Given]) -> None:
    result = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS],
        input=pickle.dumps(cases),
        check=True,
        capture_output=True,
        timeout=500,
    )
    assert result.stdout.decode().strip() == "{}"
