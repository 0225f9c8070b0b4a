"""Deadlines over real servers: the answer at submit comes from whoever leads the placement."""

import pytest

from atoll.core.model.errors import ErrorCode, InvalidInput
from tests.e2e.load import job, quiet, rows
from tests.e2e.oracle import check
from tests.e2e.stack import Stack


async def test_deadlines_are_promised_or_refused_and_promised_jobs_run(stack: Stack) -> None:
    await stack.start(("alpha",))
    async with stack.client() as client:
        elastic = {"throughput": {1: 1.0, 4: 3.0}, "work": 600, "rescale_cost": "1s"}
        jobs = await client.submit([
            job("rigid", gpus="H100:8", time_limit="10m", deadline="1h"),
            job("elastic", gpus="H100", elastic=elastic, deadline="30m"),
            job("unknown", gpus="H100:8", deadline="1h"),
        ])
        told = [one.info.told for one in jobs]
        assert [each.chance for each in told if each] == ["guaranteed", "guaranteed", "likely"]
        assert [each.cluster for each in told if each][:2] == ["alpha", "alpha"]
        with pytest.raises(InvalidInput) as caught:
            _ = await client.submit(job("late", gpus="H100:8", time_limit="2h", deadline="1h"))
        assert caught.value.code is ErrorCode.DEADLINE_INFEASIBLE
        _ = await client.submit(
            job("anyway", gpus="H100:8", time_limit="2h", deadline="1h", best_effort=True)
        )
        ids = [one.id for one in jobs]
        await quiet(stack, ids)
        assert [(await client.get(number)).info.guaranteed for number in ids] == [True, True, False]
    found = dict(await rows(stack, "SELECT name, guaranteed FROM jobs"))
    assert found == {"rigid": True, "elastic": True, "unknown": False, "anyway": False}
    await check(stack, ids)


async def test_without_a_placement_leader_nothing_is_promised(stack: Stack) -> None:
    await stack.start(("alpha",))
    for placement in stack.placements:
        placement.kill()
    async with stack.client() as client:
        one = await client.submit(job("a", gpus="H100:8", time_limit="10m", deadline="1h"))
    assert one.info.told is not None
    assert one.info.told.chance == "likely"
    assert "nobody could be asked" in one.info.told.why
