"""What an agent tells of itself: metrics, and spans that join a job's trace."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from atoll.runtime import tracing
from atoll.runtime.settings import ServiceSettings
from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import Running

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
UNSAMPLED = f"00-{TRACE}-00f067aa0ba902b7-00"


@pytest.fixture
def spans(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "spans.jsonl"
    tracing.configure(ServiceSettings(trace_file=path), "agent", instance="agent-1")
    yield path
    tracing.shutdown()


def by_name(spans: Path) -> dict[str, Any]:
    return {span["name"]: span for span in map(json.loads, spans.read_text().splitlines())}


async def test_starts_and_runs_are_spans_of_their_jobs_trace(
    dispatch: FakeDispatch, agent: Running, spans: Path
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(exit_code=2), on(0), trace=PARENT)
    dispatch.start_attempt(attempt(2), job(), on(0), trace=UNSAMPLED)
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1), attempt(2)))
    await agent.stop()
    tracing.shutdown()
    made = by_name(spans)
    assert made.keys() == {"agent.start", "agent.run"}
    assert all(span["context"]["trace_id"] == f"0x{TRACE}" for span in made.values())
    assert made["agent.run"]["attributes"]["atoll.attempt"] == "1.1"
    assert made["agent.run"]["status"]["status_code"] == "ERROR"
    assert made["agent.start"]["status"]["status_code"] == "UNSET"


async def test_decisions_and_reports_are_counted(dispatch: FakeDispatch, agent: Running) -> None:
    def value(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, labels) or 0.0

    before = value("atoll_agent_reports_total", event="FINISHED")
    starts = value("atoll_agent_decisions_total", kind="START")
    await agent.start()
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert value("atoll_agent_reports_total", event="FINISHED") == before + 1
    assert value("atoll_agent_decisions_total", kind="START") == starts + 1
    assert value("atoll_agent_session_connected") == 1
    assert value("atoll_agent_applied_seq") == 1
    await agent.stop()
    assert value("atoll_agent_session_connected") == 0
