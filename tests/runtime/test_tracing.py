import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from atoll.api.submission.v1 import submission_pb2 as api
from atoll.api.submission.v1 import submission_pb2_grpc as api_grpc
from atoll.runtime import tracing
from atoll.runtime.rpc.channel import channel
from atoll.runtime.settings import ServiceSettings
from tests.runtime.echo import METHOD, NOT_FOUND, echo_server

TRACE = "a" * 32
PARENT = f"00-{TRACE}-{'b' * 16}-01"
DROPPED = f"00-{TRACE}-{'b' * 16}-00"


@pytest.fixture
def trace_file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "spans.jsonl"
    tracing.configure(ServiceSettings(trace_file=path), "test", instance="test-1")
    yield path
    tracing.shutdown()


def spans(path: Path) -> list[dict[str, Any]]:
    """What was written, once tracing is shut down."""
    tracing.shutdown()
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_without_an_exporter_a_parent_is_only_handed_on() -> None:
    with tracing.span("work", parent=PARENT):
        assert tracing.traceparent() == PARENT
        assert tracing.trace_ids() == (TRACE, "b" * 16)
    assert tracing.traceparent() == ""
    assert not tracing.sampled(PARENT)


def test_a_span_joins_the_trace_of_its_parent(trace_file: Path) -> None:
    with tracing.span("outer", parent=PARENT, attributes={"a": 1}), tracing.span("inner"):
        inner = tracing.traceparent()
    assert inner.startswith(f"00-{TRACE}-")
    assert inner.endswith("-01")
    inside, outside = spans(trace_file)
    assert (inside["name"], outside["name"]) == ("inner", "outer")
    assert inside["parent_id"] == outside["context"]["span_id"]
    assert outside["parent_id"] == "0x" + "b" * 16
    assert outside["attributes"] == {"a": 1}
    assert outside["resource"]["attributes"]["service.name"] == "atoll-test"


def test_a_span_is_recorded_after_the_fact(trace_file: Path) -> None:
    tracing.record(
        "placed", parent=PARENT, start_ns=1_000_000_000, end_ns=2_000_000_000, error="too late"
    )
    tracing.record("not kept", parent=DROPPED, start_ns=1, end_ns=2)
    tracing.record("no trace", parent="", start_ns=1, end_ns=2)
    (span,) = spans(trace_file)
    assert span["context"]["trace_id"] == f"0x{TRACE}"
    assert span["start_time"].startswith("1970-01-01T00:00:01")
    assert span["status"] == {"status_code": "ERROR", "description": "too late"}


def test_the_ratio_decides_on_new_traces_only(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    tracing.configure(ServiceSettings(trace_file=path, trace_ratio=0.0), "test", instance="test-1")
    with tracing.span("dropped"):
        assert not tracing.sampled(tracing.traceparent())
    with tracing.span("kept", parent=PARENT):
        pass
    assert [span["name"] for span in spans(path)] == ["kept"]


@pytest.mark.parametrize("parent", ["x", "00-0-0-01", f"00-{'0' * 32}-{'b' * 16}-01"])
def test_a_malformed_parent_begins_a_new_trace(trace_file: Path, parent: str) -> None:
    with tracing.span("work", parent=parent):
        pass
    (span,) = spans(trace_file)
    assert span["parent_id"] is None


async def test_a_call_has_a_server_span_by_the_conventions(trace_file: Path) -> None:
    async with (
        echo_server() as server,
        channel(server.address, ServiceSettings()) as dialled,
    ):
        stub: Any = api_grpc.SubmissionServiceStub(dialled)
        metadata = (("traceparent", PARENT),)
        answer = await stub.GetJob(api.GetJobRequest(job_id=1), metadata=metadata)
        with pytest.raises(Exception, match="no job"):
            await stub.GetJob(api.GetJobRequest(job_id=NOT_FOUND), metadata=metadata)
    good, bad = spans(trace_file)
    assert (good["name"], good["kind"]) == (METHOD, "SpanKind.SERVER")
    assert good["attributes"] == {"rpc.system.name": "grpc", "rpc.method": METHOD}
    assert good["parent_id"] == "0x" + "b" * 16
    assert answer.job.trace == f"00-{TRACE}-{good['context']['span_id'][2:]}-01"
    # The caller's mistake is no failure of the server.
    assert bad["attributes"]["rpc.response.status_code"] == "NOT_FOUND"
    assert bad["status"]["status_code"] == "UNSET"


async def test_spans_reach_a_collector() -> None:
    received: list[str] = []

    class Collector(trace_service_pb2_grpc.TraceServiceServicer):
        async def Export(self, request: Any, context: Any) -> Any:  # noqa: N802
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    received.extend(span.name for span in scope.spans)
            return trace_service_pb2.ExportTraceServiceResponse()

    server = grpc.aio.server()
    add: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(Collector(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    settings = ServiceSettings(otlp_endpoint=f"http://127.0.0.1:{port}")
    tracing.configure(settings, "test", instance="test-1")
    with tracing.span("work"):
        pass
    await asyncio.to_thread(tracing.shutdown)
    assert received == ["work"]
    await server.stop(None)


@pytest.mark.parametrize(
    ("flags", "kept"), [("00", False), ("01", True), ("02", False), ("03", True), ("ff", True)]
)
def test_only_the_lowest_flag_says_that_a_trace_is_kept(
    trace_file: Path, flags: str, kept: bool
) -> None:
    assert tracing.sampled(f"{PARENT[:-2]}{flags}") is kept


def test_the_first_span_of_a_trace_has_the_ids_that_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    # Kept though no new trace is: that was decided with the submit.
    tracing.configure(ServiceSettings(trace_file=path, trace_ratio=0.0), "test", instance="test-1")
    own = f"00-{'c' * 32}-{'d' * 16}-01"
    tracing.begin("job", own=own, link=PARENT, start_ns=1_000, end_ns=2_000)
    tracing.begin("dropped", own=f"{own[:-2]}00", link=PARENT, start_ns=1, end_ns=2)
    tracing.record("below", parent=own, start_ns=2_000, end_ns=3_000)
    first, below = sorted(spans(path), key=lambda span: span["start_time"])
    assert (first["name"], first["parent_id"]) == ("job", None)
    assert first["context"]["trace_id"] == "0x" + "c" * 32
    assert first["context"]["span_id"] == below["parent_id"] == "0x" + "d" * 16
    assert first["links"][0]["context"]["trace_id"] == f"0x{TRACE}"
    assert first["links"][0]["context"]["span_id"] == "0x" + "b" * 16
