"""The tool that measures, on a stack that is not measured."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.e2e.stack import Stack
from tools.bench_processes import Meter
from tools.bench_rows import Rows
from tools.bench_run import SUBMITTER, Runner, Submitter, submitter

BATCH = 5


@pytest.fixture
async def process(stack: Stack) -> AsyncIterator[Submitter]:
    """A submitter to a whole stack."""
    await stack.start()
    async with submitter(stack.submission.address) as started:
        yield started


async def test_a_window_sees_all_of_its_jobs_to_their_ends(
    stack: Stack, process: Submitter
) -> None:
    connection = await asyncpg.connect(stack.dsn)
    meter = Meter({"placement": stack.placements[0].pid, SUBMITTER: process.pid})
    runner = Runner(process, Rows(connection), meter, batch=BATCH)
    first = await runner.window(20.0, 1.0)
    second = await runner.window(20.0, 1.0)
    await connection.close()
    for window in (first, second):
        assert window.errors == 0
        assert len(window.ack_ms) == 20 / BATCH
        assert len(window.jobs) == 20
        assert all(job.succeeded for job in window.jobs)
        assert all(job.submitted_at < job.accepted_at < job.ended_at for job in window.jobs)
        assert window.cpu_s.keys() == {"placement", SUBMITTER}
        assert min(window.cpu_s.values()) >= 0
    assert meter.peak_rss_mb()["placement"] > 0
    assert (
        len({job.submitted_at for job in first.jobs} & {j.submitted_at for j in second.jobs}) == 0
    )


async def test_calls_that_are_refused_are_counted(stack: Stack, process: Submitter) -> None:
    connection = await asyncpg.connect(stack.dsn)
    await connection.execute("DELETE FROM queues")
    runner = Runner(process, Rows(connection), Meter({}), batch=BATCH)
    window = await runner.window(10.0, 1.0)
    await connection.close()
    assert window.errors == 10 / BATCH
    assert window.jobs == []
    assert window.why_not_held() == f"{10 // BATCH} calls failed"
