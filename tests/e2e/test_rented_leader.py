"""A machine boots for a job while placement changes its leader: the hold is kept, and used."""

import os

from tests.e2e.load import job, quiet, value
from tests.e2e.stack import Stack
from tests.e2e.test_burst import QUICKLY, SMALL
from tests.support.waiting import eventually

SLOWLY = {
    "process": {
        "types": {"small": SMALL},
        "zones": {"here": {"most": 1}},
        "boot_s": 4.0,
        "ends_with": os.getpid(),
    }
}
HELD = "SELECT job FROM nominations WHERE cluster = 'burst-1'"


async def test_what_is_held_on_a_machine_that_boots_is_started_by_the_next_leader(
    stack: Stack,
) -> None:
    await stack.start(("alpha",), placements=2)
    broker = stack.add_broker(SLOWLY, **QUICKLY)
    broker.start()
    await broker.wait_ready()
    first = await stack.leader()
    async with stack.client() as client:
        await client.submit([job(f"full-{n}", gpus="H100:8", seconds=600) for n in range(8)])
        await client.submit([job(f"more-{n}", gpus="H100:1", seconds=600) for n in range(2)])
        await eventually(lambda: is_held(stack))
        held = await value(stack, HELD)
        first.kill()
        await stack.leader(but=first)
        await quiet(stack, [held])
    where = "SELECT cluster || ' at attempt ' || attempts FROM jobs WHERE id = $1"
    assert await value(stack, where, held) == "burst-1 at attempt 1"
    await eventually(lambda: is_free(stack))


async def is_held(stack: Stack) -> bool:
    return await value(stack, HELD) is not None


async def is_free(stack: Stack) -> bool:
    return not await is_held(stack)
