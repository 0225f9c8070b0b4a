"""What the broker rents and drains."""

from atoll.core.engine.burst.broker.decide import decide
from atoll.core.model.ids import JobId
from tests.core.burst.broker.making import a_ground, a_want, room


def test_a_job_that_would_wait_for_long_gets_an_instance() -> None:
    (rent,) = decide(a_ground(a_want())).rents
    assert rent.jobs == (JobId(17),)
    assert "for job 17" in rent.why


def test_nothing_is_rented_above_a_budget() -> None:
    assert not decide(a_ground(a_want(), budgets={None: room(rate=7.99)})).rents
