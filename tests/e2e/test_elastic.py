"""A running job that grows and shrinks, over real servers and a simulated node."""

import asyncio
from collections.abc import Callable

from tests.e2e.load import job, quiet, rows, value
from tests.e2e.oracle import check
from tests.e2e.stack import Stack

ONE_NODE = {
    "nodes": [
        {
            "name": "n",
            "count": 1,
            "cpus": 64,
            "memory": "512Gi",
            "devices": {"kind": "H100", "count": 8, "memory": "80Gi"},
        }
    ],
}
SIZES = {"throughput": {1: 1.0, 2: 1.9, 4: 3.5}, "work": 100_000, "rescale_cost": "0.1s"}


async def test_a_job_grows_when_it_is_alone_and_shrinks_for_a_newcomer(stack: Stack) -> None:
    await stack.start(())
    agent = stack.add_agent("alpha", description=ONE_NODE)
    agent.start()
    await agent.wait_ready()
    async with stack.client() as client:
        first = await client.submit(job("first", gpus="H100:7", seconds=2))
        await until(stack, first.id, lambda tasks: tasks == 1)
        elastic = await client.submit(job("elastic", gpus="H100", seconds=900, elastic=SIZES))
        # Beside the first there is room for its least size; then it is alone.
        await until(stack, elastic.id, lambda tasks: tasks == 1)
        await until(stack, elastic.id, lambda tasks: tasks == 4)
        newcomer = await client.submit(job("newcomer", gpus="H100:6", seconds=1))
        await until(stack, elastic.id, lambda tasks: tasks == 2)
        await quiet(stack, [first.id, newcomer.id])
        await until(stack, elastic.id, lambda tasks: tasks == 4)
        await client.cancel([elastic.id])
        await quiet(stack, [elastic.id])
    facts = await rows(
        stack, "SELECT generation, resized, cause FROM attempts WHERE generation > 0"
    )
    ((generation, resized, cause),) = facts
    assert (generation >= 3, resized, cause) == (True, generation, "CANCEL")
    stopped = "SELECT count(*) FROM jobs WHERE preemptions > 0"
    assert await value(stack, stopped) == 0
    await check(stack, [first.id, newcomer.id, elastic.id])


async def until(stack: Stack, number: int, reached: Callable[[int], bool]) -> None:
    """Wait until a job holds so many tasks, and has answered its last change of size."""
    found = 0
    for _ in range(1200):
        found = await value(
            stack,
            "SELECT count(DISTINCT l.rank) FROM allocations l JOIN attempts a ON a.id = l.attempt"
            " JOIN jobs j ON j.attempt = a.id"
            " WHERE j.id = $1 AND j.state = 'RUNNING' AND a.generation = a.resized",
            number,
        )
        if reached(found):
            return
        await asyncio.sleep(0.1)
    tails = "\n".join(f"== {p.service}\n{p.tail()}" for p in stack.processes())
    raise AssertionError(f"job {number} never got there: {found} tasks\n{tails}")
