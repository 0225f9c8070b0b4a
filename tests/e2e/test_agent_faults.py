"""What an agent may suffer; an attempt starts once, whatever happens around it."""

import asyncio

import pytest

from tests.e2e.load import Load, job, quiet, rows, value
from tests.e2e.oracle import check
from tests.e2e.stack import Stack
from tests.support.waiting import eventually


@pytest.mark.parametrize(
    "point",
    ["agent.journalled", "agent.before_start", "agent.after_start", "agent.before_report"],
)
async def test_agent_killed_between_intent_and_report(stack: Stack, point: str) -> None:
    await stack.start(("alpha",))
    agent = stack.agents["alpha"]
    agent.stop()
    agent.start(ATOLL_FAILPOINT=f"{point}:kill:3")
    await agent.wait_ready()
    async with stack.client() as client:
        async with Load(client, seconds=0.5) as load:
            await asyncio.to_thread(agent.wait_killed, 120)
            agent.start()
            await load.reach(len(load.acknowledged) + 40)
        await quiet(stack, load.acknowledged)
    await check(stack, load.acknowledged)


async def test_a_second_agent_waits_until_the_first_ones_lease_is_over(stack: Stack) -> None:
    await stack.start(("alpha",))
    first = stack.agents["alpha"]
    async with stack.client() as client:
        one = await client.submit(job("before", seconds=1.0))
        await quiet(stack, [one.id])
        second = stack.add_agent("alpha", name="alpha-second")
        second.start()
        await eventually(lambda: "ALREADY_HELD" in second.log.read_text())
        first.kill()
        await second.wait_ready()
        later = await client.submit([job(f"after-{i}") for i in range(20)])
        await quiet(stack, [one.id for one in later])
    assert len(stack.ledger("alpha-second")) > 0
    await check(stack, [one.id, *(each.id for each in later)])


async def test_devices_hidden_from_one_cluster_are_found_on_another(stack: Stack) -> None:
    hidden = {f"n-{i:04}": {"hide_devices": list(range(8))} for i in range(8)}
    unseen = {"nodes": hidden, "inventory_lag_s": 600}
    await stack.start(("alpha", "beta"), wrong={"alpha": unseen})
    async with stack.client() as client:
        jobs = await client.submit([job(f"eight-{i}", gpus="H100:8") for i in range(12)])
        ids = [one.id for one in jobs]
        await quiet(stack, ids)
    runs = await check(stack, ids)
    assert {run.cluster for run in runs} == {"beta"}
    assert await value(stack, "SELECT sum(rollbacks) FROM jobs") >= 1
    rejected = await rows(
        stack, "SELECT DISTINCT cluster, reason FROM attempts WHERE state::text = 'REJECTED'"
    )
    assert rejected == [("alpha", "DEVICE_ABSENT")]


async def test_the_bind_deadline_passes_with_the_decision_in_flight(stack: Stack) -> None:
    """The agent has the START and does not answer: REVOKING, then the job runs elsewhere."""
    await stack.start(("alpha",), wrong={"alpha": {"hang": True}})
    async with stack.client() as client:
        jobs = await client.submit([job(f"late-{i}") for i in range(10)])
        ids = [one.id for one in jobs]
        await eventually(lambda: _hung(stack))
        beta = stack.add_agent("beta")
        beta.start()
        await quiet(stack, ids)
    runs = await check(stack, ids)
    assert {run.cluster for run in runs} == {"beta"}
    stopped = await value(
        stack, "SELECT count(*) FROM attempts WHERE cause::text = 'BIND_DEADLINE'"
    )
    assert stopped >= 1


async def test_an_agent_frozen_past_lost_after_does_not_run_anything_twice(stack: Stack) -> None:
    """`on_lost: requeue`: the guard ends the run before it may start elsewhere."""
    await stack.start(("alpha",))
    async with stack.client() as client:
        requeued = await client.submit(job("requeued", seconds=20, on_lost="requeue"))
        held = await client.submit(job("held", seconds=5, on_lost="hold"))
        await eventually(lambda: _started(stack, [requeued.id, held.id]))
        agent = stack.agents["alpha"]
        agent.pause()
        beta = stack.add_agent("beta")
        beta.start()
        await eventually(lambda: _elsewhere(stack, requeued.id))
        agent.resume()
        await quiet(stack, [requeued.id, held.id])
    runs = await check(stack, [requeued.id, held.id])
    where = {(run.job, run.cluster, run.how) for run in runs}
    assert (requeued.id, "alpha", "GUARD") in where
    assert (requeued.id, "beta", "FINISHED") in where
    assert (held.id, "alpha", "FINISHED") in where


async def test_a_forgotten_cluster_gives_its_jobs_back(stack: Stack) -> None:
    await stack.start(("alpha",))
    async with stack.client() as client:
        jobs = await client.submit([job(f"long-{i}", seconds=600) for i in range(4)])
        ids = [one.id for one in jobs]
        await eventually(lambda: _started(stack, ids))
        stack.agents["alpha"].kill()
        beta = stack.add_agent("beta")
        beta.start()
        await eventually(lambda: _silent(stack, "alpha"))
        await client.forget_cluster("alpha", i_have_fenced_it=True)
        await eventually(lambda: _all_on(stack, ids, "beta"))
        await client.cancel(ids)
        await quiet(stack, ids)
    lost = await value(stack, "SELECT count(*) FROM attempts WHERE state::text = 'LOST'")
    assert lost == 4


async def _hung(stack: Stack) -> bool:
    found = await value(
        stack, "SELECT count(*) FROM attempts WHERE state::text = 'ASSIGNED' AND wish = 'STOP'"
    )
    return bool(found)


async def _started(stack: Stack, ids: list[int]) -> bool:
    """Whether all of them run, or did: on a slow machine a short one may be over."""
    found = await value(
        stack,
        "SELECT count(*) FROM jobs WHERE id = ANY($1::bigint[])"
        " AND state::text IN ('RUNNING', 'SUCCEEDED')",
        ids,
    )
    return bool(found == len(ids))


async def _elsewhere(stack: Stack, job_id: int) -> bool:
    found = await value(stack, "SELECT cluster FROM jobs WHERE id = $1", job_id)
    return bool(found == "beta")


async def _silent(stack: Stack, cluster: str) -> bool:
    found = await value(stack, "SELECT state::text FROM clusters WHERE name = $1", cluster)
    return bool(found != "ACTIVE")


async def _all_on(stack: Stack, ids: list[int], cluster: str) -> bool:
    found = await value(
        stack,
        "SELECT count(*) FROM jobs WHERE id = ANY($1::bigint[]) AND cluster = $2"
        " AND state::text = 'RUNNING'",
        ids,
        cluster,
    )
    return bool(found == len(ids))
