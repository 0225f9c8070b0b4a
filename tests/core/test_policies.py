"""What every policy in the registry has to keep, alone and in every combination."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.cycle import plan
from atoll.core.engine.score_kernels import NO
from atoll.core.engine.verify import verify
from atoll.core.policies.interfaces import MAY_GO, TERMS, WHY, Filter, Score, Term
from atoll.core.policies.registry import FILTERS, ORDERS, SCORES, policies
from tests.core.worlds import Given, givens, world_of

MOST_DEVICES = 64
MOST = {
    Term.CPU_LEFT: 1000,
    Term.MEMORY_LEFT: 1000,
    Term.DEVICES_LEFT: MOST_DEVICES,
    Term.BLOCKS_LEFT: 99,
    Term.DEVICES_BROKEN: 1,
    Term.DEVICES_IDLE: MOST_DEVICES,
    Term.SLICES_LOST: 48,
}


@pytest.mark.parametrize(("order", "score"), list(product(ORDERS, SCORES)))
@settings(max_examples=25)
@given(case=givens())
def test_plans_of_every_combination_verify_and_repeat(order: str, score: str, case: Given) -> None:
    world = world_of(case)
    chosen = policies(order=order, score=score)
    snapshot = world.freeze(1.0)
    plans = [plan(snapshot, chosen, now=1.0, rng=np.random.default_rng(3)) for _ in range(2)]
    verify(plans[0], world.ledger)
    assert repr(plans[0]) == repr(plans[1])


@pytest.mark.parametrize("name", ORDERS)
@given(case=givens())
def test_an_order_has_one_key_per_class(name: str, case: Given) -> None:
    snapshot = world_of(case).freeze(1.0)
    keys = ORDERS[name].keys(snapshot, now=1.0, rng=np.random.default_rng(0))
    assert keys.dtype == np.float64
    assert len(keys) == len(snapshot.queue.classes)
    assert np.isfinite(keys).all()


@pytest.mark.parametrize("score", SCORES.values(), ids=list(SCORES))
def test_a_score_cannot_reach_the_value_that_means_no(score: Score) -> None:
    weights = score.weights()
    assert weights.shape == (TERMS,)
    assert set(MOST) == set(Term)
    shares = [term for term in Term if term not in (Term.DEVICES_IDLE, Term.SLICES_LOST)]
    slices = [term for term in Term if term not in (Term.DEVICES_IDLE, Term.DEVICES_BROKEN)]
    none = (Term.CPU_LEFT, Term.MEMORY_LEFT, Term.DEVICES_IDLE)
    for terms in (shares, slices, none):
        assert sum(int(weights[term]) * MOST[term] for term in terms) < NO


@pytest.mark.parametrize("each", FILTERS.values(), ids=list(FILTERS))
@given(case=givens(), data=st.data())
def test_a_filter_says_the_same_for_equal_keys(
    each: Filter, case: Given, data: st.DataObject
) -> None:
    snapshot = world_of(case).freeze(1.0)
    asked = [
        (job.request, shape)
        for job in case.jobs
        for group in job.request.groups
        for shape in group.shapes
    ]
    told: dict[object, list[int]] = {}
    for request, shape in asked:
        codes = each.refuses(snapshot, request, shape=shape, now=1.0)
        assert codes.shape == (len(case.nodes),)
        assert all(code == MAY_GO or WHY[code] for code in codes.tolist())
        key = each.key(snapshot, request, shape=shape, now=1.0)
        assert told.setdefault(key, codes.tolist()) == codes.tolist()


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(KeyError):
        policies(score="no_such")
