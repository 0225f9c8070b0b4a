"""Urgency: who has the most to gain from a start now, and who has waited for too long."""

from dataclasses import replace

import numpy as np
import pytest

from atoll.core.model.ids import JobId
from atoll.core.policies.factors import priority_factors
from atoll.core.policies.fair_share import FairShare, FairShareSettings
from atoll.core.policies.registry import policies
from atoll.core.policies.urgency import Haste, aged, urgency_s
from atoll.core.state.run_times import ended_run
from atoll.core.state.world import World
from tests.core.test_forecast import HOUR, NOW, busy, gpus
from tests.core.worlds import simple_job

URGENT = FairShareSettings(urgency=0.14)


def ordered(world: World, settings: FairShareSettings) -> list[int]:
    snapshot = world.freeze(NOW)
    ranks = FairShare(settings).ranks(snapshot, now=NOW, rng=np.random.default_rng(0))
    jobs = snapshot.queue.job[np.lexsort((snapshot.queue.job, ranks.key, ranks.inner))]
    return [int(job) for job in jobs]


def test_a_doubling_is_worth_a_part_of_the_largest_backlog() -> None:
    haste = Haste(np.array([1 / 100, 1 / 50]), np.array([100.0, 50.0]), np.array([0.5, 0.5]))
    slow, quick = urgency_s(haste, worth=0.14, backlog_s=10 * HOUR)
    # Half as long is twice as urgent by what waiting costs, and twice by what it takes.
    assert quick - slow == pytest.approx(2 * 0.14 * 10 * HOUR)
    least = urgency_s(haste, worth=0.14, backlog_s=0.0)
    assert least[1] - least[0] == pytest.approx(2 * 0.14 * HOUR)


def test_the_oldest_of_each_queue_goes_first_once_it_has_waited_for_too_long() -> None:
    waited = np.array([100.0, 500.0, 900.0, 950.0, 10.0])
    share = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    vertex = np.array([1, 1, 2, 2, 2])
    assert aged(waited, share, vertex, backlog_s=400.0).tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert not aged(waited, share, vertex, backlog_s=0.0).any()
    # It takes long to make room for the whole, so what needs it ages sooner.
    assert aged(np.array([300.0]), np.ones(1), np.ones(1, np.int64), backlog_s=400.0).all()


def test_only_the_switch_lets_the_past_order_jobs() -> None:
    world = busy([gpus(8, limit_s=10 * HOUR)])
    (run,) = world.ledger.holdings.values()
    quick = ended_run(run.queue, run.tasks, limit_s=10 * HOUR, ran_s=60.0)
    slow = ended_run(run.queue, run.tasks, limit_s=5 * HOUR, ran_s=5 * HOUR)
    world.run_times.note([quick, slow] * 20)
    world.upsert_pending([
        simple_job(8, gpus(8, limit_s=5 * HOUR), at=NOW - 20),
        simple_job(9, gpus(8, limit_s=10 * HOUR), at=NOW - 10),
    ])
    assert ordered(world, FairShareSettings()) == [8, 9]
    assert ordered(world, URGENT) == [9, 8]


def test_the_factors_of_a_job_tell_what_its_urgency_is_worth() -> None:
    world = busy([gpus(8)])
    world.upsert_pending([simple_job(9, gpus(1), at=NOW - 20)])
    pending = world.pending(JobId(9))
    assert pending is not None
    values = {}
    for settings in (FairShareSettings(), URGENT):
        found = priority_factors(
            world.look(NOW), pending, policies(shares=settings), now=NOW, expected=(1 / 60, 60.0)
        )
        values[settings.urgency] = {factor.name: factor.value for factor in found}
    assert values[0.0]["urgency"] == 0.0
    assert values[0.14]["urgency"] < 0.0
    longer = priority_factors(
        world.look(NOW),
        replace(pending, submitted_at=NOW),
        policies(shares=URGENT),
        now=NOW,
        expected=(1 / 6000, 6000.0),
    )
    assert {f.name: f.value for f in longer}["urgency"] < values[0.14]["urgency"]
