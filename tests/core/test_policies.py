"""What every policy in the registry has to keep, alone and in every combination."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.cycle import plan
from atoll.core.engine.score_kernels import NO
from atoll.core.engine.verify import verify
from atoll.core.policies.interfaces import FORMS, MAY_GO, TERMS, WHY, Filter, Loss, Score, Term
from atoll.core.policies.registry import FILTERS, ORDERS, SCORES, policies
from atoll.core.state.columns import (
    FORM_BLOCKS,
    FORM_MEMORY,
    FORM_NONE,
    FORM_SLICES,
    FORM_WHOLE,
)
from tests.core.worlds import Given, givens, teach, world_of

MOST_DEVICES = 64
MOST = {
    Term.CPU_LEFT: 1000,
    Term.MEMORY_LEFT: 1000,
    Term.DEVICES_LEFT: MOST_DEVICES,
    Term.BLOCKS_LEFT: 99,
    Term.DEVICES_BROKEN: 1,
    Term.DEVICES_IDLE: MOST_DEVICES,
    Term.SLICES_LOST: 48,
    Term.LOSS_SQUASHED: 100,
    Term.NODE_LEFT: 100 * MOST_DEVICES,
    Term.ALIGNED: 3000,
    Term.CHANCE: 1 << 20,
}
SHARE_ONLY = (Term.DEVICES_BROKEN,)
NEVER = {
    FORM_NONE: (*SHARE_ONLY, Term.DEVICES_LEFT, Term.BLOCKS_LEFT, Term.SLICES_LOST),
    FORM_WHOLE: (*SHARE_ONLY, Term.BLOCKS_LEFT, Term.DEVICES_IDLE, Term.SLICES_LOST),
    FORM_BLOCKS: (Term.DEVICES_IDLE, Term.SLICES_LOST),
    FORM_MEMORY: (Term.DEVICES_IDLE, Term.SLICES_LOST),
    FORM_SLICES: (*SHARE_ONLY, Term.DEVICES_IDLE, Term.NODE_LEFT),
}
"""Terms that shapes of a form do not have."""


@pytest.mark.parametrize(("order", "score"), list(product(ORDERS, SCORES)))
@settings(max_examples=25)
@given(case=givens())
def test_plans_of_every_combination_verify_and_repeat(order: str, score: str, case: Given) -> None:
    world = world_of(case)
    teach(world, case)
    chosen = policies(order=order, score=score)
    snapshot = world.freeze(1.0)
    plans = [plan(snapshot, chosen, now=1.0, rng=np.random.default_rng(3)) for _ in range(2)]
    verify(plans[0], world.ledger)
    assert repr(plans[0]) == repr(plans[1])


@pytest.mark.parametrize("name", ORDERS)
@given(case=givens())
def test_an_order_ranks_every_job_that_is_shown(name: str, case: Given) -> None:
    snapshot = world_of(case).freeze(1.0)
    ranks = ORDERS[name].ranks(snapshot, now=1.0, rng=np.random.default_rng(0))
    for column in (ranks.outer, ranks.inner, ranks.key):
        assert len(column) == len(snapshot.queue.job)
        assert np.isfinite(column).all()


@pytest.mark.parametrize("score", SCORES.values(), ids=list(SCORES))
def test_a_score_cannot_reach_the_value_that_means_no(score: Score) -> None:
    weights = score.weights(known=1000)
    assert weights.shape == (FORMS, TERMS)
    most = MOST | {Term.LOSS: most_growth(score.loss)}
    assert set(most) == set(Term)
    for form, absent in NEVER.items():
        terms = [term for term in Term if term not in absent]
        assert sum(abs(int(weights[form, term])) * most[term] for term in terms) < NO


def most_growth(policy: Loss) -> int:
    """Quanta by which a full node of 8 devices can grow when all is lost at once."""
    strands = policy.strand.weight + policy.scarce_strand.weight
    weight = policy.fragments + policy.scarce_fragments + policy.holes + strands
    return int((weight * 800 + policy.openness * 64) / policy.quantum)


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
