"""Jobs with deadlines on spot capacity: what every rule keeps, and what each of them does."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.burst.availability import STATES, chain_of, state_of
from atoll.core.engine.burst.priors import EAST, PRIORS, WEST, Prior, Turn, prior_for, turn_chance
from atoll.core.engine.burst.rules import RULES
from atoll.core.engine.burst.spot import (
    NOTHING,
    ON_DEMAND,
    Choice,
    Mode,
    Run,
    Terms,
    advance,
    decide,
    is_safe,
    preempted,
)
from atoll.core.engine.burst.uniform_progress import UniformProgress
from atoll.core.engine.burst.watch import Market, Seen, first, look

TICK_S = 600.0
SPOT = Choice(Mode.SPOT, 0)
# Overheads of no tick, of a part, of more than one; slack from none to as much as the work.
TERMS = tuple(
    Terms(work * TICK_S, (work + slack) * TICK_S + overhead_s, overhead_s, TICK_S, 3.0, 1.0)
    for work, slack, overhead_s in ((12, 6.0, 720.0), (9, 0.0, 300.0), (7.5, 8.0, 0.0))
)
Ups = Sequence[tuple[bool, ...]]

markets = st.integers(1, 3).flatmap(
    lambda zones: st.lists(st.tuples(*[st.booleans()] * zones), min_size=30, max_size=30)
)
rules = st.sampled_from(sorted(RULES))


def chosen(name: str, ups: Ups, terms: Terms) -> tuple[list[Choice], Run]:
    """What a rule runs on tick by tick; after the last look nothing is up any more."""
    run, market, choices = Run(terms.work_s), None, list[Choice]()
    for tick in range(math.ceil(terms.deadline_s / terms.tick_s)):
        market = look(market, ups[tick] if tick < len(ups) else (False,) * len(ups[0]), TICK_S)
        run, choice = decide(RULES[name], run, market, terms=terms)
        choices.append(choice)
        run = advance(run, choice, terms)
        if run.ended_s is not None:
            break
    return choices, run


def finished_at(choices: Sequence[Choice], ups: Ups, terms: Terms) -> float:
    """By a count of its own: when the work is done; fails if spot is held where there is none."""
    before, wait, left = NOTHING, 0.0, terms.work_s
    for tick, choice in enumerate(choices):
        lost = before.mode is Mode.SPOT and not ups[tick][before.zone]
        if choice.mode is Mode.SPOT:
            assert ups[tick][choice.zone]
        if choice.mode is Mode.NONE:
            before = choice
            continue
        if choice != before or lost:
            wait = terms.overhead_s
        idle = min(wait, TICK_S)
        if left <= TICK_S - idle:
            return tick * TICK_S + idle + left
        wait, left, before = wait - idle, left - (TICK_S - idle), choice
    return math.inf


@settings(max_examples=120, deadline=None)
@given(rules, markets, st.sampled_from(TERMS))
def test_no_deadline_is_missed_whatever_is_up(name: str, ups: Ups, terms: Terms) -> None:
    choices, run = chosen(name, ups, terms)
    assert run.ended_s == pytest.approx(finished_at(choices, ups, terms))
    assert finished_at(choices, ups, terms) <= terms.deadline_s


@settings(max_examples=120, deadline=None)
@given(rules, markets, st.sampled_from(TERMS), st.data())
def test_what_is_to_come_changes_no_choice_before_it(
    name: str, ups: Ups, terms: Terms, data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, len(ups)))
    other = [*ups[:at], *[tuple(not up for up in each) for each in ups[at:]]]
    assert chosen(name, ups, terms)[0][:at] == chosen(name, other, terms)[0][:at]


def market(*up: bool, ticks: int = 1) -> Market:
    seen: Market | None = None
    for _ in range(ticks):
        seen = look(seen, up, TICK_S)
    assert seen is not None
    return seen


def on(where: Choice, *, now: float, left: float) -> Run:
    """A run with so many ticks behind it and so many of work before it."""
    return Run(left * TICK_S, now * TICK_S, where)


# 100 ticks of work in 200, so that the line is at half the time; a start takes 2 ticks.
WIDE = Terms(100 * TICK_S, 200 * TICK_S, 2 * TICK_S, TICK_S, 3.0, 1.0)


@pytest.mark.parametrize(
    ("run", "up", "want"),
    [
        pytest.param(on(SPOT, now=50, left=90), True, SPOT, id="spot is kept though behind"),
        pytest.param(on(SPOT, now=99, left=98), True, SPOT, id="spot is kept with little left"),
        pytest.param(on(NOTHING, now=50, left=90), True, SPOT, id="from nothing spot is taken"),
        pytest.param(on(NOTHING, now=50, left=76), False, ON_DEMAND, id="behind: on demand"),
        pytest.param(on(NOTHING, now=50, left=75), False, NOTHING, id="on the line: nothing"),
        pytest.param(on(ON_DEMAND, now=50, left=73.5), True, ON_DEMAND, id="not ahead enough"),
        pytest.param(on(ON_DEMAND, now=50, left=73), True, SPOT, id="ahead by two overheads"),
        pytest.param(on(ON_DEMAND, now=50, left=60), False, ON_DEMAND, id="no spot to go to"),
        pytest.param(on(NOTHING, now=100, left=96.5), True, ON_DEMAND, id="safety net"),
        pytest.param(on(NOTHING, now=100, left=96), True, SPOT, id="just before the safety net"),
    ],
)
def test_uniform_progress_is_as_published(run: Run, up: bool, want: Choice) -> None:
    assert UniformProgress().choose(run, market(up), WIDE) == want


@pytest.mark.parametrize(
    ("run", "choice", "safe"),
    [
        pytest.param(on(NOTHING, now=97, left=100), NOTHING, True, id="a start fits afterwards"),
        pytest.param(on(NOTHING, now=97.5, left=100), NOTHING, False, id="it does not"),
        pytest.param(on(NOTHING, now=97.5, left=100), ON_DEMAND, True, id="now or never"),
        pytest.param(on(SPOT, now=98, left=100), SPOT, True, id="spot that runs uses no slack"),
        pytest.param(on(NOTHING, now=97.5, left=100), SPOT, False, id="spot that starts does"),
        pytest.param(on(SPOT, now=100, left=99.5), SPOT, False, id="no start fits any more"),
        pytest.param(on(SPOT, now=199, left=1), SPOT, True, id="the work ends in this tick"),
    ],
)
def test_the_last_safe_moment_counts_the_start(run: Run, choice: Choice, safe: bool) -> None:
    assert is_safe(run, choice, WIDE) == safe


def test_greedy_goes_on_demand_at_the_last_safe_moment_and_stays() -> None:
    choices, _ = chosen("greedy", [(tick >= 100,) for tick in range(200)], WIDE)
    assert choices[:98] == [NOTHING] * 98
    assert set(choices[98:]) == {ON_DEMAND}


def test_a_start_and_a_move_take_the_overhead_and_a_stay_does_not() -> None:
    terms, run = TERMS[0], Run(TERMS[0].work_s)
    for choice, left_s in (
        (SPOT, 7200.0),  # 600 of the 720 seconds
        (SPOT, 6720.0),
        (SPOT, 6120.0),
        (Choice(Mode.SPOT, 1), 6120.0),
        (NOTHING, 6120.0),
        (Choice(Mode.SPOT, 1), 6120.0),
        (ON_DEMAND, 6120.0),
        (ON_DEMAND, 5640.0),
    ):
        run = advance(run, choice, terms)
        assert run.left_s == left_s


def test_a_zone_that_goes_down_takes_the_instance_with_it() -> None:
    run = Run(1000.0, 600.0, Choice(Mode.SPOT, 1), 120.0)
    assert preempted(run, market(False, True)) == run
    assert preempted(run, market(True, False)) == Run(1000.0, 600.0)


def test_it_moves_to_another_zone_when_its_own_goes_down() -> None:
    ups = [(tick < 8, tick >= 5) for tick in range(30)]
    for name in RULES:
        choices, _ = chosen(name, ups, TERMS[0])
        assert choices[:8] == [SPOT] * 8
        assert choices[8] == Choice(Mode.SPOT, 1)


def test_the_market_remembers_how_long_and_how_often() -> None:
    seen: Market | None = None
    for up in (True, True, False, True, True, True):
        seen = look(seen, (up, False), TICK_S)
    assert seen is not None
    assert [zone.run_s for zone in seen.zones] == [3 * TICK_S, 6 * TICK_S]
    assert seen.any == seen.zones[0]
    assert seen.zones[1].share < 0.5 < seen.zones[0].share


def test_a_prior_is_not_used_where_it_was_fitted() -> None:
    assert prior_for(["us-west-2a_k80_1", "elsewhere"]) is EAST
    assert prior_for(["us-west-2a_v100_1", "us-east-1a_v100_1"]) is WEST
    assert not EAST.fitted_on & WEST.fitted_on


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("step_s", [60.0, TICK_S, 3600.0])
def test_the_chain_goes_somewhere_from_everywhere(prior: Prior, step_s: float) -> None:
    chain = chain_of(prior, step_s)
    sums = np.add.reduceat(chain.chance, chain.first[:-1])
    assert sums == pytest.approx(np.ones(STATES))
    assert chain.chance.min() > 0
    assert 0 <= chain.to.min() <= chain.to.max() < STATES


@given(st.booleans(), st.floats(1, 1e7), st.floats(0, 1))
def test_every_zone_is_in_a_state_of_its_own_kind(up: bool, run_s: float, share: float) -> None:
    seen = Seen(up, run_s, share, 1.0)
    assert chain_of(EAST, TICK_S).up[state_of(seen)] == up
    assert 0 < turn_chance(EAST, seen, TICK_S) < turn_chance(EAST, seen, 2 * TICK_S) < 1


def test_with_spot_that_never_goes_nothing_else_is_paid() -> None:
    never = Turn(-50.0, 0.0, 0.0, 0.0, 0.0)
    terms = Terms(20 * TICK_S, 30 * TICK_S, 720.0, TICK_S, 3.0, 1.0, Prior(rise=never, fall=never))
    choices, _ = chosen("atoll", [(True,)] * 40, terms)
    assert choices == [SPOT] * 22  # 20 of work, 1.2 of a start
    choices, _ = chosen("atoll", [(False,)] * 40, terms)
    assert [choice for choice in choices if choice != NOTHING] == [ON_DEMAND] * 22


def test_a_zone_seen_for_the_first_time_counts_as_usual() -> None:
    assert first(False, 1.0).share == pytest.approx(0.55, abs=0.01)
    assert first(True, 1.0).share > first(False, 1.0).share
