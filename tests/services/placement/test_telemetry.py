"""What a leader tells of its shard, and what it no longer tells once it has stepped down."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import REGISTRY

from atoll.core.model.ids import ClusterName
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.reason import ReasonCode
from atoll.core.model.trace import job_trace
from atoll.placement import telemetry
from atoll.placement.usecases.forget import forget_cluster
from atoll.placement.usecases.leader import Leader
from atoll.runtime import logs
from tests.adapters.store_builders import NORTH
from tests.services.placement.shard import Shard, one_gpu, requeued_when_lost

TRACE = "0af7651916cd43dd8448eb211c80319c"
SILENT = "placement_cluster_silent_seconds"
LAG = "placement_stream_lag_decisions"


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"atoll_{name}", labels)


@pytest.fixture(autouse=True)
def standing_by() -> Iterator[None]:
    yield
    telemetry.stands_by()


@pytest.fixture
def restored_log() -> Iterator[None]:
    """Leaves the log as it was found."""
    root = logging.getLogger()
    level = root.level
    yield
    root.handlers.clear()
    root.setLevel(level)


def told(capsys: pytest.CaptureFixture[str], event: str) -> list[dict[str, Any]]:
    """Lines of the log about an event."""
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    return [line for line in map(json.loads, lines) if line["event"] == event]


async def cycle(leader: Leader) -> None:
    await leader.catch_up()
    await leader.take_back()
    telemetry.observe(leader, await leader.schedule())


async def listen(leader: Leader) -> None:
    await leader.listen(dispatch_alive=True)
    telemetry.observe_clusters(leader)


async def silence(shard: Shard, leader: Leader, seconds: int) -> None:
    """Nobody is heard for so long, and the leader looks every second."""
    for _ in range(seconds):
        await shard.clock.advance(1)
        await listen(leader)


async def test_placements_are_told_apart_by_whether_they_waited() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    first, _ = await shard.submit(one_gpu("a", gpus=8), one_gpu("b", gpus=8))
    leader = await shard.lead()
    at_once = value("job_placed_seconds_count", waited="no") or 0
    waited = value("job_placed_seconds_count", waited="yes") or 0
    await cycle(leader)
    assert value("placement_queued_jobs") == 1
    await shard.report((await shard.attempt(first.id)).id, AttemptEvent.FINISHED, exit_code=0)
    await cycle(leader)
    assert value("placement_queued_jobs") == 0
    assert value("placement_live_attempts") == 1
    assert value("job_placed_seconds_count", waited="no") == at_once + 1
    assert value("job_placed_seconds_count", waited="yes") == waited + 1


async def test_a_rollback_is_counted_and_logged_with_the_ids_of_its_trace(
    capsys: pytest.CaptureFixture[str], restored_log: None
) -> None:
    logs.configure("info", form="json", service="placement")
    shard = Shard()
    await shard.cluster()
    before = value("placement_rollbacks_total") or 0
    submit = f"00-{TRACE}-b7ad6b7169203331-01"
    (job,) = await shard.submit(one_gpu(), trace=submit)
    own = job_trace(submit, job.id).split("-")[1]
    leader = await shard.lead()
    await cycle(leader)
    attempt = await shard.attempt(job.id)
    await shard.report(
        attempt.id, AttemptEvent.REJECTED, reason=ReasonCode.BACKEND_ERROR, suspects=()
    )
    await cycle(leader)
    assert value("placement_rollbacks_total") == before + 1
    (line,) = told(capsys, "rolled back")
    assert (line["job_id"], line["attempt_id"], line["trace_id"]) == (job.id, attempt.id, own)


async def test_who_is_stopped_for_others_is_counted() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=8)
    (low,) = await shard.submit(one_gpu("low", gpus=8))
    leader = await shard.lead()
    await cycle(leader)
    await shard.sent()
    await shard.report((await shard.attempt(low.id)).id, AttemptEvent.STARTED)
    before = value("placement_attempts_preempted_total") or 0
    await shard.submit(one_gpu("high", gpus=8, priority=10))
    await cycle(leader)
    assert value("placement_attempts_preempted_total") == before + 1
    await cycle(leader)
    assert value("placement_attempts_preempted_total") == before + 1


async def test_silence_is_told_and_what_is_given_up_counted(
    capsys: pytest.CaptureFixture[str], restored_log: None
) -> None:
    logs.configure("info", form="json", service="placement")
    shard = Shard()
    await shard.cluster()
    await shard.submit(requeued_when_lost())
    leader = await shard.lead()
    await cycle(leader)
    lost = value("placement_attempts_lost_total") or 0
    await silence(shard, leader, 30)
    await cycle(leader)
    assert (value(SILENT, cluster=NORTH) or 0) > 20
    assert value("placement_attempts_lost_total") == lost + 1
    states = [line["state"] for line in told(capsys, "cluster changed its state")]
    assert states == ["SILENT", "LOST"]


async def test_a_forgotten_cluster_has_no_series() -> None:
    shard = Shard()
    await shard.cluster()
    leader = await shard.lead()
    await listen(leader)
    assert value(LAG, cluster=NORTH) == 0
    await silence(shard, leader, 30)
    leader.fence = (await forget_cluster(leader.store, leader.fence, NORTH, fenced=True)).fence
    await listen(leader)
    assert value(LAG, cluster=NORTH) is None
    assert value(SILENT, cluster=NORTH) is None


async def test_who_stepped_down_tells_nothing_of_the_shard() -> None:
    shard = Shard()
    await shard.cluster(nodes=1, gpus=1)
    await shard.cluster(ClusterName("south"), nodes=1, gpus=1)
    await shard.submit(*[one_gpu(f"job-{n}") for n in range(4)])
    leader = await shard.lead()
    telemetry.leads()
    await cycle(leader)
    await listen(leader)
    assert value("placement_queued_jobs") == 2
    telemetry.stands_by()
    assert value("placement_leading_info") == 0
    assert value("placement_queued_jobs") == 0
    assert value("placement_live_attempts") == 0
    assert value(SILENT, cluster=NORTH) is None
