"""Room on rented machines, for jobs that say what renting for them may cost."""

from dataclasses import replace

import pytest

from atoll.core.model.burst import Rental
from atoll.core.model.ids import JobId
from atoll.core.model.plan import PendingJob, RunTerms
from atoll.core.model.reason import ReasonCode
from tests.core.rented_worlds import Shard, job, machine, places

DOLLAR = 1_000_000


def dear(number: int, **given: object) -> Rental:
    """A machine of 2 H100s at $2 an hour."""
    plain = machine(number, **given)  # type: ignore[arg-type]
    return replace(plain, offer=replace(plain.offer, price=2 * DOLLAR))


def bounded(number: int, gpus: int = 1, *, most: int, limit_s: float = 3600.0) -> PendingJob:
    """A job that may cost so much."""
    plain = job(number, gpus)
    terms = RunTerms(time_limit_s=limit_s)
    return replace(plain, request=replace(plain.request, terms=terms, burst_max_cost=most))


@pytest.mark.parametrize(
    ("wanted", "takes_it"),
    [
        (bounded(1, most=DOLLAR), True),
        (bounded(1, most=DOLLAR - 1), False),
        (bounded(1, 2, most=DOLLAR), False),
        (bounded(1, most=DOLLAR, limit_s=3601.0), False),
        (bounded(1, most=9 * DOLLAR, limit_s=0.0), False),
        (bounded(1, most=0, limit_s=0.0), True),
    ],
    ids=[
        "half a machine for an hour",
        "a little less than that costs",
        "all of it",
        "a second longer",
        "who knows how long",
        "without a limit of its own",
    ],
)
def test_spare_room_is_for_those_whom_it_costs_no_more_than_they_may(
    wanted: PendingJob, takes_it: bool
) -> None:
    shard = Shard(nodes=0)
    shard.rent(dear(1))
    shard.submit(wanted)
    made = shard.at(1.0)
    assert places(made) == ({1: "burst-1"} if takes_it else {})
    for each in made.waiting:
        assert each.reasons[0].code is ReasonCode.RENTED
        assert "cost" in each.reasons[0].message


def test_a_machine_is_for_those_for_whom_it_was_rented_whatever_it_costs() -> None:
    shard = Shard(nodes=0)
    shard.rent(dear(1, jobs=(JobId(2),)))
    shard.submit(bounded(2, most=1), bounded(3, most=1))
    assert places(shard.at(1.0)) == {2: "burst-1"}
