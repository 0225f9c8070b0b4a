"""The table of queued jobs against a dict, and how little it takes."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.model.ids import JobId, QueueName
from atoll.core.model.plan import PendingJob
from atoll.core.state.pending import PendingTable
from tests.core.worlds import cpus
from tools.bench_core_queue import queue_bytes_per_job

REQUEST = cpus(1)

JOBS = st.builds(
    lambda number, begin, deadline, preemptions, trace: PendingJob(
        JobId(number),
        1 + number % 3,
        QueueName("a"),
        0,
        submitted_at=float(number),
        request=REQUEST,
        begin_at=begin,
        deadline_at=deadline,
        guaranteed=deadline > 0,
        preemptions=preemptions,
        trace=trace,
    ),
    st.integers(1, 40).map(lambda n: n * (1 << 33) + n),
    st.sampled_from((0.0, 0.0, 5.0)),
    st.sampled_from((0.0, 0.0, 9.0)),
    st.sampled_from((0, 0, 2)),
    st.sampled_from(("", "x", "y", "z")),
)


@given(st.lists(st.tuples(st.lists(JOBS, max_size=9), st.sets(st.integers(1, 40))), max_size=12))
def test_a_table_keeps_what_it_was_given_until_it_is_taken_out(
    steps: list[tuple[list[PendingJob], set[int]]],
) -> None:
    table, model = PendingTable(), dict[JobId, PendingJob]()
    for jobs, gone in steps:
        fresh = {job.id: job for job in jobs if job.id not in model}
        none = np.zeros(len(fresh), np.int64)
        table.add(list(fresh.values()), groups=none, waits=none)
        model |= fresh
        here = [JobId(n * (1 << 33) + n) for n in gone if n * (1 << 33) + n in model]
        table.remove(table.find(here))
        for job in here:
            del model[job]
        assert table.count == len(model)
        assert {job: told(table, job) for job in model} == model
        assert (table.find(here) == -1).all()


def told(table: PendingTable, job: JobId) -> PendingJob:
    slots = table.find([job])
    bare = PendingJob(job, 0, QueueName("a"), 0, submitted_at=0.0, request=REQUEST)
    return replace(
        bare,
        revision=int(table.columns.revision[slots[0]]),
        submitted_at=float(table.columns.submitted_at[slots[0]]),
        begin_at=float(table.begin_at(slots)[0]),
        deadline_at=float(table.deadline_at(slots)[0]),
        guaranteed=bool(table.guaranteed(slots)[0]),
        preemptions=int(table.preemptions(slots)[0]),
        trace=table.traces(slots)[0],
    )


def test_a_queued_job_takes_less_than_100_bytes_beside_its_spec() -> None:
    assert queue_bytes_per_job(100_000) < 100
