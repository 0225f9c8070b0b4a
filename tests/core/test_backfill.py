"""Passes of backfilling: nobody who comes later delays a reservation."""

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.engine.timeline.backfill_kernels import Asks, Found, backfill
from atoll.core.engine.timeline.profile_kernels import Steps, of_ends

POOL = 8
Wish = tuple[int, int]
"""Processors and seconds."""


@dataclass
class Pass:
    """What a pass decided."""

    started: list[int]
    held: dict[int, float]


def one_pass(
    running: list[Wish],
    wishes: list[Wish],
    *,
    now: float = 0.0,
    most: int = 1,
    strict: bool = False,
    groups: list[int] | None = None,
) -> Pass:
    """`running`: processors and the time at which their request ends."""
    running = sorted(running, key=lambda each: each[1])
    count, room = len(wishes), 2 * len(wishes) + len(running) + 4
    asks = Asks(
        np.array([w[0] for w in wishes], np.int64),
        np.array([w[1] for w in wishes], np.float64),
        np.array(groups or range(count), np.int64),
        np.ones(count, np.bool_),
    )
    found = Found(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count))
    steps = Steps(np.zeros(room), np.zeros(room, np.int64), np.zeros(1, np.int64))
    amounts = np.array([n for n, _ in running], np.int64)
    ends = np.array([end for _, end in running], np.float64)
    of_ends(steps, POOL - int(amounts.sum()), ends, amounts, now)
    started, held = backfill(steps, np.arange(count), asks, found, most, strict)
    times = found.held_at[:held].tolist()
    return Pass(
        found.started[:started].tolist(), dict(zip(found.held.tolist(), times, strict=False))
    )


def test_a_short_job_goes_around_a_reservation_and_a_long_one_does_not() -> None:
    made = one_pass([(6, 10)], [(8, 5), (2, 11), (2, 10)])
    assert made.started == [2]
    assert made.held == {0: 10.0}


def test_a_long_job_may_take_what_the_reservation_leaves() -> None:
    assert one_pass([(6, 10)], [(6, 5), (2, 1000)]).started == [1]


def test_a_second_reservation_protects_the_second_job() -> None:
    wishes = [(8, 5), (8, 5), (2, 10)]
    assert one_pass([(6, 10)], wishes, most=1).held == {0: 10.0}
    assert one_pass([(6, 10)], wishes, most=2).held == {0: 10.0, 1: 15.0}


def test_of_jobs_that_are_alike_one_holds_a_reservation() -> None:
    made = one_pass([(6, 10)], [(8, 5), (8, 5), (7, 5)], most=2, groups=[1, 1, 2])
    assert made.held == {0: 10.0, 2: 15.0}


def test_in_strict_order_nobody_overtakes() -> None:
    assert one_pass([(6, 10)], [(1, 1), (8, 5), (1, 1)], most=0, strict=True).started == [0]


def test_what_can_never_run_holds_nothing() -> None:
    made = one_pass([], [(POOL + 1, 5), (POOL, 5)])
    assert made.started == [1]
    assert made.held == {}


wish = st.tuples(st.integers(1, POOL), st.integers(1, 20))


@given(
    running=st.lists(st.tuples(st.integers(1, 2), st.integers(1, 30)), max_size=4),
    wishes=st.lists(wish, min_size=1, max_size=10),
    late=st.lists(wish, max_size=6),
    most=st.integers(1, 4),
)
def test_when_everybody_ends_by_request_no_reservation_is_delayed(
    *, running: list[Wish], wishes: list[Wish], late: list[Wish], most: int
) -> None:
    """Time goes on from end to end; jobs that come later stand behind."""
    waiting = list(enumerate(wishes))
    promised: dict[int, float] = {}
    now, left = 0.0, list(running)
    while waiting:
        made = one_pass(left, [w for _, w in waiting], now=now, most=most)
        for place in made.started:
            job, (need, length) = waiting[place]
            assert now <= promised.get(job, math.inf)
            left.append((need, now + length))  # type: ignore[arg-type]
        for place, start in made.held.items():
            job = waiting[place][0]
            assert start <= promised.get(job, math.inf)
            promised[job] = start
        assert sum(need for need, _ in left) <= POOL
        waiting = [each for place, each in enumerate(waiting) if place not in made.started]
        if late:
            waiting.append((len(wishes) + len(late), late.pop()))
        now = min((end for _, end in left), default=now)
        left = [each for each in left if each[1] > now]
