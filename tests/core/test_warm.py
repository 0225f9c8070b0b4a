"""After `warm` no world makes a kernel compile."""

import importlib
import pkgutil
from types import ModuleType

import numpy as np
from hypothesis import given
from numba.core.dispatcher import Dispatcher

import atoll.core
from atoll.core.engine.explain import explain
from atoll.core.engine.kernels import warm
from atoll.core.engine.verify import verify
from atoll.core.policies.registry import policies
from tests.core.worlds import Given, commit, givens, planned, simple_job, simple_world, world_of
from tests.core.worlds import cpus as cpu_request


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(atoll.core.__path__, "atoll.core.")
    return [importlib.import_module(each.name) for each in found]


def compiled() -> dict[str, int]:
    return {
        f"{module.__name__}.{name}": len(value.signatures)
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher)
    }


def test_every_kernel_is_warm() -> None:
    warm()
    called_by_kernels_only = {name for name, count in compiled().items() if not count}
    assert called_by_kernels_only == set()


@given(givens())
def test_no_world_makes_a_kernel_compile(case: Given) -> None:
    warm()
    before = compiled()
    world = world_of(case)
    for now in (1.0, 2.0):
        made = planned(world.freeze(now), most=3)
        verify(made, world.ledger)
        commit(world, made)
        world.end_allocations([p.attempt for p in made.placements[:1]])
    snapshot = world.freeze(3.0)
    for job in case.jobs:
        explain(snapshot, job, policies(), now=3.0)
    assert compiled() == before


def test_an_empty_world_makes_no_kernel_compile() -> None:
    warm()
    before = compiled()
    planned(simple_world([], [simple_job(1, cpu_request(1))]).freeze(1.0))
    assert compiled() == before
    assert np.array(list(before.values())).any()
