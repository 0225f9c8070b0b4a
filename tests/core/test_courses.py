"""What a forecast tells of every cluster, and of the order in which jobs have their turn."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings

from tests.core.test_forecast import busy, foretold, gpus
from tests.core.worlds import QUEUES, Given, givens, simple_job, singles, world_of


@given(givens(singles()))
@settings(max_examples=30, deadline=None)
def test_what_is_told_of_all_clusters_fits_what_is_told_of_the_job(case: Given) -> None:
    world = world_of(case)
    made = foretold(world)
    for job in case.jobs:
        point, starts = made.of(job), made.starts(job)
        assert (point is None) == (not starts)
        if point is not None:
            assert starts[point.cluster] == min(starts.values()) == point.start


def test_turns_are_in_the_order_of_the_queue() -> None:
    world = busy([gpus(8)])
    jobs = [replace(simple_job(number, gpus(8)), priority=number % 2) for number in range(10, 60)]
    world.upsert_pending(jobs)
    made = foretold(world, order="priority_fifo")
    turns = {
        job.id: made.turns((job.queue, job.request, job.priority), np.array([job.id]))[0]
        for job in jobs
    }
    by_turn = sorted(jobs, key=lambda job: turns[job.id])
    assert by_turn == sorted(jobs, key=lambda job: (-job.priority, job.id))
    assert made.turns((QUEUES[0], gpus(3), 0), np.array([1])).tolist() == [np.inf]
