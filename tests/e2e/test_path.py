"""The path of a job, from submit to its end, over real servers and processes."""

import json

from atoll.core.model.ids import JobId
from atoll.core.model.trace import job_trace
from tests.e2e.load import Load, job, quiet, rows, value
from tests.e2e.oracle import check
from tests.e2e.stack import Stack, metrics_of
from tests.support.lines import whole_lines
from tests.support.waiting import eventually


async def test_jobs_of_every_shape_run_once_and_end(stack: Stack) -> None:
    await stack.start(("alpha", "beta"))
    async with stack.client() as client:
        specs = [
            job("whole", gpus="H100:8"),
            job("share", gpus="H100:0.25"),
            job("cpu", resources={"cpus": 2}),
            job("gang", num_nodes=4, topology={"same": "rack"}),
            job("array", array=5),
        ]
        jobs = await client.submit(specs)
        ids = [one.id for one in jobs]
        assert len(ids) == 9
        await quiet(stack, ids)
        states = {one.id: (await client.get(one.id)).state for one in jobs}
    assert set(states.values()) == {"SUCCEEDED"}
    runs = await check(stack, ids)
    assert len(runs) == 9


async def test_dependents_wait_and_follow_or_are_cancelled(stack: Stack) -> None:
    await stack.start()
    async with stack.client() as client:
        jobs = await client.submit([
            job("first", seconds=0.5),
            job("then", depends_on=["first"]),
            job("fails", envs={"ATOLL_SIM_SECONDS": "0.2", "ATOLL_SIM_EXIT": "3"}),
            job("never", depends_on=["fails"]),
            job("never-either", depends_on=["never"]),
        ])
        ids = [one.id for one in jobs]
        await quiet(stack, ids)
    found = dict(await rows(stack, "SELECT name, state::text FROM jobs"))
    assert found == {
        "first": "SUCCEEDED",
        "then": "SUCCEEDED",
        "fails": "FAILED",
        "never": "CANCELLED",
        "never-either": "CANCELLED",
    }
    runs = {run.job: run for run in await check(stack, ids)}
    ended = runs[ids[0]].ended
    assert ended is not None
    assert ended <= runs[ids[1]].begun


async def test_one_trace_goes_from_the_submit_to_the_run(stack: Stack) -> None:
    await stack.start()
    async with stack.client() as client:
        one = await client.submit(job("traced"))
        await quiet(stack, [one.id])
        trace = await value(stack, "SELECT trace FROM jobs WHERE id = $1", one.id)
    trace_id = job_trace(trace, JobId(one.id)).split("-")[1]
    all_four = {"atoll-submission", "atoll-placement", "atoll-dispatch", "atoll-agent"}
    # Every process writes its spans in its own time.
    await eventually(lambda: services_in(stack, trace_id) >= all_four)


def services_in(stack: Stack, trace_id: str) -> set[str]:
    """Whose spans a trace has."""
    spans = [json.loads(line) for line in whole_lines(stack.folder / "traces.jsonl")]
    mine = [s for s in spans if s["context"]["trace_id"] == f"0x{trace_id}"]
    return {s["resource"]["attributes"]["service.name"] for s in mine}


async def test_cancels_race_with_starts_and_every_job_ends_once(stack: Stack) -> None:
    await stack.start()
    async with stack.client() as client:
        async with Load(client, batch=10, pause_s=0.02) as load:
            cancelled: list[int] = []
            while len(cancelled) < 150:
                await load.reach(len(cancelled) + 10)
                batch = load.acknowledged[len(cancelled) : len(cancelled) + 10]
                await client.cancel(batch)
                cancelled += batch
        await quiet(stack, load.acknowledged)
    await check(stack, load.acknowledged)
    ends = dict(await rows(stack, "SELECT state::text, count(*) FROM jobs GROUP BY 1"))
    assert ends.get("CANCELLED", 0) > 0
    assert metrics_of(stack.placements[0])["atoll_placement_ledger_differences_count"] == 0
