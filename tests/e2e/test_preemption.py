"""Stops for others, over real servers and simulated nodes."""

import asyncio

from tests.e2e.load import job, quiet, rows
from tests.e2e.oracle import check
from tests.e2e.stack import Stack

FOR_EVER = 600.0


async def running(stack: Stack, ids: list[int]) -> None:
    for _ in range(1200):
        found = await rows(
            stack,
            "SELECT id FROM jobs WHERE id = ANY($1::bigint[]) AND state = 'RUNNING'",
            ids,
        )
        if len(found) == len(ids):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"not all of {ids} run")


async def test_an_urgent_job_stops_as_many_as_it_takes_and_all_go_on(stack: Stack) -> None:
    await stack.start(("alpha",))
    nodes = len(await rows(stack, "SELECT id FROM nodes"))
    async with stack.client() as client:
        low = await client.submit([
            job(f"low-{n}", gpus="H100:8", seconds=FOR_EVER) for n in range(nodes)
        ])
        ids = [one.id for one in low]
        await running(stack, ids)
        urgent = await client.submit(job("urgent", gpus="H100:8", priority_class="urgent"))
        await running_or_over(stack, urgent.id)
        stopped = await rows(stack, "SELECT id, state FROM jobs WHERE preemptions > 0 ORDER BY id")
        assert len(stopped) == 1
        await quiet(stack, [urgent.id])
        await running(stack, ids)
        assert (await client.get(urgent.id)).state == "SUCCEEDED"
        assert await rows(stack, "SELECT job FROM nominations") == []
        await client.cancel(ids)
        await quiet(stack, ids)
    causes = await rows(
        stack, "SELECT cause, count(*) FROM attempts WHERE state = 'STOPPED' GROUP BY 1"
    )
    assert dict(causes) == {"PREEMPT": 1, "CANCEL": nodes}
    await check(stack, [*ids, urgent.id])


async def running_or_over(stack: Stack, number: int) -> None:
    for _ in range(1200):
        ((state,),) = await rows(stack, "SELECT state FROM jobs WHERE id = $1", number)
        if state in ("RUNNING", "SUCCEEDED"):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"job {number} never ran")
