"""One job, seen by its ids in the spans, the log and the metrics of every service."""

import json
from collections import defaultdict
from typing import Any

from atoll.core.model.ids import JobId
from atoll.core.model.trace import job_trace
from tests.deploy_rules.names import exported_names, names_in_rules
from tests.e2e.load import job, quiet, value
from tests.e2e.processes import ServiceProcess
from tests.e2e.stack import Stack, metrics_of
from tests.support.lines import whole_lines
from tests.support.waiting import eventually

SERVICES = {"submission", "placement", "dispatch", "agent"}
STEPS = [
    "submission.job",
    "placement.place",
    "dispatch.push",
    "agent.start",
    "agent.run",
    "dispatch.report",
]


async def test_the_same_ids_are_in_spans_and_logs_of_every_service(stack: Stack) -> None:
    stack.env["ATOLL_LOG_LEVEL"] = "debug"
    await stack.start(reservations=1)
    broker = stack.add_broker({"simulated": {}})
    broker.start()
    await broker.wait_ready()
    async with stack.client() as client:
        one = await client.submit(job("traced"))
        await quiet(stack, [one.id])
    traceparent = await value(stack, "SELECT trace FROM jobs WHERE id = $1", one.id)
    trace_id = job_trace(traceparent, JobId(one.id)).split("-")[1]
    # Every process writes its spans in its own time.
    whole = {*STEPS[:-1], "dispatch.report FINISHED"}
    await eventually(lambda: steps(stack, trace_id) >= whole)
    assert_the_trace_is_whole(stack, trace_id, submit=traceparent)
    assert_the_logs_agree(stack, trace_id, job_id=one.id)
    # Heartbeats tell how far an agent is, and the leader looks at them now and then.
    lag = 'atoll_placement_stream_lag_decisions{cluster="alpha"}'
    await eventually(lambda: metrics_of(stack.placements[0]).get(lag) == 0)
    # Some are told by who leads.
    await eventually(lambda: not missing_metrics(stack))
    assert_the_metrics_count(stack)


def assert_the_trace_is_whole(stack: Stack, trace_id: str, *, submit: str) -> None:
    spans = spans_of(stack, trace_id)
    assert {s["name"] for s in spans} >= set(STEPS)
    assert {service_of(s) for s in spans} == {f"atoll-{name}" for name in SERVICES}
    # All hang on the first, which links to the submit.
    first = next(s for s in spans if s["name"] == STEPS[0])
    assert first["parent_id"] is None
    assert {s["parent_id"] for s in spans if s is not first} == {first["context"]["span_id"]}
    (link,) = first["links"]
    (call,) = spans_of(stack, submit.split("-")[1])
    assert call["name"].endswith("SubmissionService/SubmitJobs")
    assert link["context"]["span_id"] == call["context"]["span_id"]
    begins = {s["name"]: s["start_time"] for s in reversed(spans)}
    order = ["placement.place", "dispatch.push", "agent.start", "agent.run"]
    assert sorted(order, key=lambda name: begins[name]) == order
    assert max(s["end_time"] for s in spans) == max(
        s["end_time"] for s in spans if s["attributes"].get("atoll.event") == "FINISHED"
    )


def assert_the_logs_agree(stack: Stack, trace_id: str, *, job_id: int) -> None:
    told: dict[str, set[str]] = defaultdict(set)
    for process in stack.processes():
        for line in log_of(process):
            if line.get("job_id") == job_id or job_id in line.get("job_ids", ()):
                told[line["service"]].add(line.get("trace_id", ""))
    assert set(told) == SERVICES
    # The submission speaks of the call, which may have many jobs.
    del told["submission"]
    assert all(trace_id in ids for ids in told.values()), told
    assert set().union(*told.values()) <= {trace_id, ""}


def missing_metrics(stack: Stack) -> set[str]:
    """What rules ask for and no process exports."""
    here: set[str] = set()
    for process in stack.processes():
        here |= exported_names(metrics_text(process))
    return names_in_rules() - here


def assert_the_metrics_count(stack: Stack) -> None:
    placement = metrics_of(stack.placements[0])
    assert placement['atoll_job_placed_seconds_count{waited="no"}'] == 1
    assert placement["atoll_placement_queued_jobs"] == 0
    assert placement["atoll_placement_cycle_seconds_count"] > 0
    assert metrics_of(stack.dispatches[0])["atoll_job_accepted_seconds_count"] == 1


def steps(stack: Stack, trace_id: str) -> set[str]:
    """Names of a trace's spans, those of reports with their event."""
    return {
        f"{s['name']} {s['attributes'].get('atoll.event', '')}".strip()
        for s in spans_of(stack, trace_id)
    }


def spans_of(stack: Stack, trace_id: str) -> list[dict[str, Any]]:
    spans = [json.loads(line) for line in whole_lines(stack.folder / "traces.jsonl")]
    mine = [s for s in spans if s["context"]["trace_id"] == f"0x{trace_id}"]
    return sorted(mine, key=lambda s: s["start_time"])


def service_of(span: dict[str, Any]) -> str:
    return str(span["resource"]["attributes"]["service.name"])


def log_of(process: ServiceProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(process.log) if line.startswith("{")]


def metrics_text(process: ServiceProcess) -> str:
    from urllib.request import urlopen

    with urlopen(f"http://{process.metrics}/metrics", timeout=30) as answer:
        return str(answer.read().decode())
