"""A job's spans join the trace that is stored with it; counters tell what was dealt with."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from atoll.adapters.memory.clock import ManualClock
from atoll.adapters.memory.streams import MemoryDecisionStream
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.trace import job_trace
from atoll.dispatch.settings import DispatchSettings
from atoll.dispatch.telemetry import Gauges
from atoll.dispatch.usecases.table import SessionTable
from atoll.runtime import tracing
from tests.services.dispatch.stubs import session
from tests.services.dispatch.values import story
from tests.services.dispatch.worlds import World, node
from tests.support.waiting import eventually

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
async def trace_file(tmp_path: Path) -> AsyncIterator[Path]:
    """Where spans go while the test runs."""
    file = tmp_path / "spans.jsonl"
    settings = DispatchSettings.model_validate({"trace_file": file})
    tracing.configure(settings, "dispatch", instance="test")
    yield file
    tracing.shutdown()


def names_in(file: Path, own: str) -> list[str]:
    """Names of a trace's spans, sorted."""
    spans = map(json.loads, file.read_text().splitlines())
    trace_id = own.split("-")[1]
    return sorted(s["name"] for s in spans if s["context"]["trace_id"] == f"0x{trace_id}")


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"atoll_{name}", labels) or 0.0


async def test_spans_and_counters_of_one_job(memory_world: World, trace_file: Path) -> None:
    agent = await memory_world.agent(await memory_world.replica())
    await agent.open()
    await agent.inventory(1, [node()])

    async def listed() -> bool:
        return bool(await memory_world.nodes())

    await eventually(listed)
    applied = count("dispatch_reports_total", event="STARTED", result="applied")
    refused = count("dispatch_reports_total", event="STARTED", result="refused")
    accepted = count("job_accepted_seconds_count")
    submit = f"00-{TRACE}-b7ad6b7169203331-01"
    jobs = await memory_world.submit(trace=submit)
    (decision,) = await memory_world.place(jobs)
    await eventually(lambda: agent.numbers == [1])
    for number, event in enumerate((AttemptEvent.STARTED, AttemptEvent.STARTED), start=1):
        await agent.report(story(decision.attempt, event, first=number))
        await eventually(lambda: agent.report_seq == number)  # noqa: B023
    tracing.shutdown()
    assert names_in(trace_file, job_trace(submit, jobs[0].id)) == [
        "dispatch.push",
        "dispatch.report",
    ]
    assert count("dispatch_reports_total", event="STARTED", result="applied") == applied + 1
    assert count("dispatch_reports_total", event="STARTED", result="refused") == refused + 1
    assert count("job_accepted_seconds_count") == accepted + 1


async def test_a_silent_redis_shows_until_it_answers_again(memory_world: World) -> None:
    agent = await memory_world.agent(await memory_world.replica())
    await agent.open()
    stream = memory_world.stream
    assert isinstance(stream, MemoryDecisionStream)
    stream.down = True
    await eventually(lambda: count("dispatch_redis_silent") == 1)
    stream.down = False
    await eventually(lambda: count("dispatch_redis_silent") == 0)


def test_gauges_follow_the_sessions() -> None:
    table = SessionTable(most=10)
    gauges = Gauges(table, ManualClock())
    one = session("gauged", start=3)
    one.lane.head = 10
    table.enter(one)
    gauges.look()
    assert count("dispatch_lag_decisions", cluster="gauged") == 7
    assert count("dispatch_sessions") == 1
    table.leave(one)
    gauges.look()
    assert REGISTRY.get_sample_value("atoll_dispatch_lag_decisions", {"cluster": "gauged"}) is None
