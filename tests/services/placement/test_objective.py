"""The objective that is set decides who shrinks for a newcomer."""

import pytest

from atoll.core.model.spec import Elastic
from atoll.core.policies.registry import policies
from atoll.placement.settings import PlacementSettings
from tests.services.placement.shard import one_gpu
from tests.services.placement.test_elastic import HOLD_S, HOUR, led, started, step

SIZES = {
    "flat": Elastic(((1, 1.0), (2, 1.4), (4, 2.0)), 90 * HOUR, rescale_cost_s=60.0),
    "steep": Elastic(((1, 1.0), (2, 1.9), (4, 3.6)), 90 * HOUR, rescale_cost_s=60.0),
}


@pytest.mark.parametrize("order", [("flat", "steep"), ("steep", "flat")])
async def test_who_does_least_with_a_device_gives_it_back_for_goodput(
    order: tuple[str, str],
) -> None:
    shard, leader = await led()
    leader.policies = policies(objective="goodput")
    jobs = {
        name: await started(shard, leader, one_gpu(name, tasks=4, elastic=SIZES[name]))
        for name in order
    }
    await shard.clock.advance(HOLD_S)
    await shard.submit(one_gpu("other", gpus=2))
    (decision,) = await step(leader)
    assert decision.attempt == (await shard.attempt(jobs["flat"].id)).id
    assert len(decision.tasks) == 2


def test_an_unknown_objective_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of goodput, speed"):
        PlacementSettings.model_validate({"objective": "wealth"})
