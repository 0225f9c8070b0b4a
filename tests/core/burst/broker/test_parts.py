"""How much of an instance a job takes, of one machine and of a group."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.parts import holds, part_of
from atoll.core.engine.choice.asks import asks_of
from atoll.core.model.burst import MICROS, Offer
from atoll.core.model.burst_wants import Ask, TaskAsk
from atoll.core.model.plan import GangRequest, GroupRequest
from atoll.core.model.resources import DeviceRequest, TaskShape
from tests.core.burst.broker.making import GIB, a_ground, a_want, an_ask, an_offer

ALONE = an_offer()
"""One machine with 8 devices, 64 CPUs and 512 GiB."""
PAIR = an_offer("pair", nodes=2, price=16 * MICROS)
FOUR = an_offer("four", nodes=4, price=32 * MICROS)


def gang(*tasks: tuple[int, int]) -> Ask:
    """(count, devices) of equal tasks, with a CPU each."""
    each = tuple(TaskAsk(count, 100 * devices, 1000, GIB) for count, devices in tasks)
    count = sum(task.count for task in each)
    return an_ask(
        sum(count * devices for count, devices in tasks),
        cpu_milli=1000 * count,
        memory_bytes=GIB * count,
        tasks=each,
    )


@pytest.mark.parametrize(
    ("offer", "ask", "part"),
    [
        pytest.param(ALONE, an_ask(4), 0.5, id="half of one machine"),
        pytest.param(ALONE, gang((2, 8)), 2.0, id="a gang that is wider than one machine"),
        pytest.param(PAIR, gang((2, 8)), 1.0, id="two machines, one task each"),
        pytest.param(PAIR, gang((4, 4)), 1.0, id="two machines, two tasks each"),
        pytest.param(FOUR, gang((2, 8)), 0.5, id="two machines of four"),
        pytest.param(FOUR, gang((2, 2)), 0.25, id="what fits one machine takes one"),
        pytest.param(FOUR, an_ask(4), 0.25, id="a job of one task takes one"),
        pytest.param(FOUR, an_ask(16), float("inf"), id="a task wider than a machine"),
        pytest.param(FOUR, gang((6, 5)), float("inf"), id="one task a machine, and six tasks"),
        pytest.param(
            FOUR, gang((4, 3), (4, 5)), 1.0, id="tasks of two sizes fill each other's gaps"
        ),
    ],
)
def test_how_much_of_an_instance_a_job_takes(offer: Offer, ask: Ask, part: float) -> None:
    assert max(part_of(offer, ask)) == part
    assert holds(offer, ask) == (part <= 1)


def test_of_another_kind_nothing_is_held() -> None:
    other = an_offer(kind="h100", nodes=2)
    assert not holds(other, gang((2, 8)))
    assert holds(other, an_ask(0, tasks=(TaskAsk(2, 0, 1000, GIB),)))


@given(
    st.integers(1, 8),
    st.lists(
        st.lists(st.tuples(st.integers(1, 6), st.integers(0, 8)), min_size=1, max_size=3),
        max_size=6,
    ),
)
def test_jobs_whose_parts_fit_have_machines_enough(
    nodes: int, jobs: list[list[tuple[int, int]]]
) -> None:
    offer = an_offer(nodes=nodes)
    asks = [gang(*job) for job in jobs]
    found = [ask for ask in asks if holds(offer, ask)]
    for ask in found:
        machines = round(max(part_of(offer, ask)) * nodes) if nodes > 1 else 1
        assert ask.blocks <= machines * 800
        assert all(task.blocks <= 800 for task in ask.tasks)


def test_what_a_request_asks_of_several_machines() -> None:
    worker = TaskShape(4000, 8 * GIB, DeviceRequest("a100", 8))
    share = TaskShape(1000, GIB, DeviceRequest("a100", 1, blocks=30))
    request = GangRequest((GroupRequest(2, 2, (worker,)), GroupRequest(3, 3, (share,))), burst=True)
    (ask,) = asks_of(request)
    assert ask.tasks == (TaskAsk(2, 800, 4000, 8 * GIB), TaskAsk(3, 100, 1000, GIB))
    alone = GangRequest((GroupRequest(1, 1, (worker,)),), burst=True)
    assert asks_of(alone)[0].tasks == ()


def test_a_gang_that_no_machine_holds_gets_several_that_are_one_instance() -> None:
    want = a_want(asks=(gang((2, 8)),))
    (rent,) = decide(a_ground(want, offers=(ALONE, PAIR))).rents
    assert rent.offer is PAIR
    assert rent.why.startswith(
        "rented on demand pair (2 machines) in east-a at $16.00/h for job 17"
    )
    (refused,) = decide(a_ground(want, offers=(ALONE,))).decisions
    assert refused.why == "nothing rented for job 17: nobody offers now what holds it whole"


def test_two_gangs_share_an_instance_with_machines_for_both() -> None:
    wants = [a_want(job, asks=(gang((2, 8)),)) for job in (17, 18, 19)]
    rents = decide(a_ground(*wants, offers=(FOUR,))).rents
    assert Counter(len(rent.jobs) for rent in rents) == {2: 1, 1: 1}


def test_a_job_of_one_machine_does_not_rent_more_than_it_needs() -> None:
    (rent,) = decide(a_ground(a_want(), offers=(PAIR, ALONE))).rents
    assert rent.offer is ALONE
