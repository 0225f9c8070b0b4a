"""What holds for every decision, whatever is wanted and offered."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.burst.broker.candidates import ranked, rented
from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Deeds, Ground, Options, Outlook, Use
from atoll.core.engine.burst.broker.memory import Memory, memory_from_json
from atoll.core.engine.burst.broker.parts import holds, part_of
from atoll.core.model.burst import MICROS, EndCause, InstanceState, Market, Offer, chain_of
from atoll.core.model.burst_rules import refusal
from atoll.core.model.burst_wants import TaskAsk, Want
from atoll.core.model.ids import JobId, QueueName
from tests.core.burst.broker.making import (
    NOW,
    a_ground,
    a_policy,
    a_want,
    an_ask,
    an_instance,
    an_offer,
    room,
)

QUEUES = [None, *(QueueName(each) for each in ("a", "a.b", "a.c", "d"))]
kinds = st.sampled_from(["a100", "h100", ""])
queues = st.sampled_from(QUEUES)
dollars = st.one_of(st.none(), st.floats(-20, 60))
offers = st.builds(
    an_offer,
    st.sampled_from(["s", "m", "l"]),
    st.sampled_from(["x", "y"]),
    kind=kinds,
    devices=st.sampled_from([0, 1, 4, 8]),
    price=st.integers(0, 20 * MICROS),
    lead_s=st.floats(0, 7200),
    market=st.sampled_from(list(Market)),
    region=st.sampled_from(["east", "west"]),
    available=st.booleans(),
    most=st.integers(0, 2),
    nodes=st.sampled_from([1, 1, 2, 4]),
)
asks = st.builds(
    an_ask,
    st.sampled_from([0, 1, 2, 8]),
    kind=kinds,
    tasks=st.lists(
        st.builds(TaskAsk, st.integers(1, 5), st.sampled_from([0, 100, 400])), max_size=2
    ).map(tuple),
)
wants = st.builds(
    a_want,
    queue=queues.filter(bool),
    asks=st.lists(asks, max_size=2).map(tuple),
    work_s=st.floats(0, 1e5),
    p50_h=st.floats(0, 50),
    deadline_at=st.one_of(st.just(0.0), st.floats(NOW - 1e4, NOW + 1e6)),
    local_p90_at=st.floats(0, NOW + 1e6),
    max_cost=st.sampled_from([0, 0, MICROS, 20 * MICROS]),
    preemptible=st.booleans(),
    as_of=st.sampled_from([0.0, NOW - 1000, NOW]),
)
policies = st.builds(
    a_policy,
    hour=st.sampled_from([0.0, 1.0, 10.0]),
    allowed=st.booleans(),
    killed=st.sampled_from([False] * 9 + [True]),
    regions=st.sampled_from([(), ("east",)]),
    most_price=st.sampled_from([0, MICROS]),
)
rooms = st.builds(room, rate=dollars, month=dollars)
outlooks = st.builds(
    lambda kind, queue, low, spread: Outlook(
        kind, queue, 3600.0, np.linspace(low, low + spread, 24).reshape(6, 4)
    ),
    kinds,
    queues,
    st.integers(-10, 10),
    st.integers(0, 30),
)


@st.composite
def grounds(draw: st.DrawFn) -> Ground:
    found = [
        replace(each, job=JobId(n)) for n, each in enumerate(draw(st.lists(wants, max_size=12)), 1)
    ]
    listed = {each.key: each for each in draw(st.lists(offers, min_size=1, max_size=6))}
    sold = list(listed.values())
    instances = tuple(
        an_instance(
            n,
            draw(st.sampled_from(sold)),
            state=draw(st.sampled_from(list(InstanceState)[:5])),
            queue=draw(queues),
            idle_since=NOW - draw(st.floats(0, 1e5)),
        )
        for n in range(1, draw(st.integers(0, 4)) + 1)
    )
    use = st.builds(Use, st.booleans(), st.integers(0, 1), st.integers(0, 1))
    return a_ground(
        *found,
        offers=tuple(sold),
        instances=instances,
        uses={each.id: draw(use) for each in instances},
        policies={q: replace(draw(policies), queue=q) for q in draw(st.sets(queues))},
        budgets={q: draw(rooms) for q in draw(st.sets(queues))},
        outlooks=tuple(draw(st.lists(outlooks, max_size=3))),
        options=Options(most_rents=draw(st.integers(1, 20))),
    )


@settings(max_examples=200, deadline=None)
@given(grounds())
def test_a_decision_keeps_all_rules(ground: Ground) -> None:
    deeds = decide(ground)
    _is_within_budgets(ground, deeds)
    _is_allowed(ground, deeds)
    _is_told(ground, deeds)
    again = decide(ground)
    assert (again.rents, again.drains, again.decisions) == (
        deeds.rents,
        deeds.drains,
        deeds.decisions,
    )
    assert memory_from_json(deeds.memory.to_json()) == deeds.memory


def _is_within_budgets(ground: Ground, deeds: Deeds) -> None:
    for queue, left in ground.budgets.items():
        mine = [rent for rent in deeds.rents if queue in chain_of(rent.queue)]
        if mine and left.rate_left is not None:
            assert sum(rent.offer.price for rent in mine) <= left.rate_left
        if mine and left.month_left is not None:
            assert sum(rent.ahead for rent in mine) <= left.month_left


def _is_allowed(ground: Ground, deeds: Deeds) -> None:
    by_job = {each.job: each for each in ground.wants}
    counts = Counter(each.offer.key for each in ground.instances)
    counts.update(rent.offer.key for rent in deeds.rents)
    given_to = Counter(job for rent in deeds.rents for job in rent.jobs)
    assert len(deeds.rents) <= ground.options.most_rents
    assert all(count == 1 for count in given_to.values())
    for rent in deeds.rents:
        assert rent.offer.available
        assert not rent.offer.most or counts[rent.offer.key] <= rent.offer.most
        assert not refusal(ground.policies, rent.queue, rent.offer)
        inside = [by_job[job] for job in rent.jobs]
        assert all(each.queue == rent.queue for each in inside)
        assert rent.offer.market is Market.ON_DEMAND or all(each.preemptible for each in inside)
        _fit_together(rent.offer, inside)


def _fit_together(offer: Offer, wants: list[Want]) -> None:
    """By the first alternative of each that fits the offer at all."""
    taken = [next(ask for ask in want.asks if holds(offer, ask)) for want in wants]
    parts = [part_of(offer, ask) for ask in taken]
    assert all(sum(amounts) <= 1 + 1e-6 for amounts in zip(*parts, strict=True))


def _is_told(ground: Ground, deeds: Deeds) -> None:
    by_id = {each.id: each for each in ground.instances}
    states = {by_id[each.instance].state for each in deeds.drains}
    assert states <= {InstanceState.REQUESTED, InstanceState.BOOTING, InstanceState.READY}
    assert len({each.instance for each in deeds.drains}) == len(deeds.drains)
    for drain in deeds.drains:
        assert ground.now <= drain.stop_at <= drain.drain_by
        use = ground.uses[drain.instance]
        assert drain.cause is not EndCause.IDLE or not (use.live or use.held)
    actions = Counter(each.action for each in deeds.decisions)
    assert actions["rent"] == sum(len(rent.jobs) or 1 for rent in deeds.rents)
    assert actions["drain"] == len(deeds.drains)
    assert all(each.why for each in deeds.decisions)
    rented = {job for rent in deeds.rents for job in rent.jobs}
    assert not rented & {each.job for each in deeds.decisions if each.action == "none"}


@given(grounds())
def test_the_kill_switch_ends_all(ground: Ground) -> None:
    killed = {**ground.policies, None: a_policy(killed=True)}
    deeds = decide(replace(ground, policies=killed))
    assert not deeds.rents
    open_ones = {each.id for each in ground.instances if each.state in list(InstanceState)[:3]}
    assert {each.instance for each in deeds.drains} == open_ones
    assert all(each.cause is EndCause.POLICY for each in deeds.drains)


@given(wants, st.lists(offers, max_size=6, unique_by=lambda offer: offer.key), policies)
def test_candidates_are_what_holds_the_job_the_best_first(
    want: Want, sold: list[Offer], policy: object
) -> None:
    found = rented(want, sold, {None: policy}, now=NOW)  # type: ignore[dict-item]
    assert len(found) == sum(any(holds(offer, ask) for ask in want.asks) for offer in sold)
    assert found == ranked(reversed(found))
    allowed = [each for each in found if each.allowed]
    assert found[: len(allowed)] == tuple(allowed)
    assert [each.total for each in allowed] == sorted(each.total for each in allowed)
    assert all(each.allowed == each.why.endswith("allowed by queue policy") for each in found)


def test_a_candidate_says_what_it_costs_and_when() -> None:
    spot = an_offer(market=Market.SPOT, price=round(3.1 * MICROS))
    (found,) = rented(a_want(work_s=7200.0), [spot], {None: a_policy()}, now=NOW)
    assert found.why == "on spot in 6 min at $3.10/h, allowed by queue policy"
    assert (found.start_at, found.finish_at) == (NOW + 360, NOW + 7560)
    assert (found.price, found.delay_cost) == (6_200_000, 50_400_000)


def test_an_empty_memory_is_a_new_beginning() -> None:
    assert memory_from_json(Memory().to_json()) == Memory()
