"""The simulation without messages."""

import pytest

from atoll.agent.simcluster.progress import Progress, saving_of
from atoll.core.model.ids import JobId
from atoll.core.model.spec import Checkpoint
from atoll.core.policies.registry import policies
from atoll.sim.driver import Driver
from atoll.sim.fleet import fragmentation
from atoll.sim.foretelling import Foretelling
from tests.sim.jobs import nodes, work


def test_jobs_wait_for_those_before_them() -> None:
    driver = Driver(nodes(1), policies())
    record = driver.run([work(0, 100, gpus=8), work(10, 50, gpus=8), work(20, 30, gpus=4)])
    assert [job.started for job in record.jobs.values()] == [0.0, 100.0, 150.0]
    assert [job.ended for job in record.jobs.values()] == [100.0, 150.0, 180.0]
    assert {job.state for job in record.jobs.values()} == {"SUCCEEDED"}
    assert record.held == 0
    assert sum(stretch.useful_s for stretch in record.stretches) == 180.0


def test_a_simulation_that_is_cut_shows_what_still_runs() -> None:
    record = Driver(nodes(1), policies()).run([work(0, 100, gpus=8), work(5, 9)], until=50.0)
    assert record.ended == 50.0
    assert [job.state for job in record.jobs.values()] == ["RUNNING", "QUEUED"]
    assert record.held == 800


def test_equal_seeds_give_equal_records() -> None:
    works = [work(i * 3.0, 20 + i % 7 * 11, gpus=1 + i % 4) for i in range(300)]
    first, second = (Driver(nodes(3), policies(), seed=4).run(works) for _ in range(2))
    assert first.stretches == second.stretches
    assert len(first.stretches) == 300


def test_waiting_jobs_are_told_when_they_start() -> None:
    foretelling = Foretelling()
    works = [work(i * 30.0, 50 + i % 5 * 20, gpus=8) for i in range(200)]
    Driver(nodes(1), policies(), foretelling=foretelling).run(works)
    covered = foretelling.coverage()
    assert covered.count > 100
    assert 0.3 < covered.within[0] < 0.7
    assert covered.within[1] > 0.75


def test_a_dependent_job_starts_after_what_it_needs() -> None:
    needs = work(0, 5, depends_on=(JobId(1),))
    record = Driver(nodes(1), policies()).run([work(0, 70), needs])
    assert record.jobs[JobId(2)].started == 70.0


@pytest.mark.parametrize(
    ("interval", "ran", "saved"),
    [(0.0, 50.0, 0.0), (20.0, 50.0, 40.0), (20.0, 15.0, 0.0), (20.0, 500.0, 100.0)],
)
def test_what_a_checkpoint_saves(interval: float, ran: float, saved: float) -> None:
    job = work(0, 100, checkpoint=Checkpoint(interval_s=interval), restart_cost_s=7.0)
    saving = saving_of(job.spec)
    after = Progress().after(saving, job.run_s, ran_s=ran)
    assert after.saved_s == saved
    assert after.left_s(saving, job.run_s) == 100 - saved + 7.0


def test_free_devices_that_no_task_can_use_are_fragments() -> None:
    fleet = nodes(2, gpus=2)
    driver = Driver(fleet, policies())
    record = driver.run([work(0, 10, gpus=2), work(0, 10, gpus=1), work(1, 10, gpus=2)])
    assert record.jobs[JobId(3)].started == 10.0
    held = record.samples[1]
    assert (held.at, held.held) == (1.0, 300)
    assert held.fragmentation == pytest.approx(2 / 3)


def test_fragmentation_of_nothing_free_is_none() -> None:
    import numpy as np

    free = np.zeros((2, 2), np.int64)
    assert fragmentation(free, np.array([1, 1]), ((1.0, 1, 100),)) == 0.0
