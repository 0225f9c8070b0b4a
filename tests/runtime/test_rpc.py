import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, TypeAlias, cast

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from prometheus_client import REGISTRY

from atoll.api.submission.v1 import submission_pb2 as api
from atoll.api.submission.v1 import submission_pb2_grpc as api_grpc
from atoll.core.model.errors import DomainError, ErrorCode, InvalidInput, NotFound
from atoll.runtime.rpc import options
from atoll.runtime.rpc.channel import channel, outgoing_metadata
from atoll.runtime.rpc.server import GrpcServer
from atoll.runtime.settings import ServiceSettings
from atoll.wire.errors import error_of_call
from tests.runtime.echo import BUG, MANY_FAULTS, METHOD, NAME, NOT_FOUND, SLOW, echo_server
from tests.support.waiting import eventually

Stub: TypeAlias = "api_grpc.SubmissionServiceAsyncStub"  # in the stub file only
UNLIMITED = [("grpc.max_send_message_length", -1)]


@pytest.fixture
async def server() -> AsyncIterator[GrpcServer]:
    async with echo_server() as started:
        yield started


@pytest.fixture
async def dialled(server: GrpcServer) -> AsyncIterator[grpc.aio.Channel]:
    async with channel(server.address, ServiceSettings()) as made:
        yield made


@pytest.fixture
def stub(dialled: grpc.aio.Channel) -> Stub:
    return api_grpc.SubmissionServiceStub(dialled)


async def failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


def raw(dialled: grpc.aio.Channel, data: bytes) -> Any:
    call: Any = dialled.unary_unary(f"/{METHOD}")
    return call(data)


def refusal(error: grpc.aio.AioRpcError) -> DomainError:
    trailers = tuple(error.trailing_metadata() or ())
    found = error_of_call(error.code().value[0], error.details() or "", trailers)
    assert found is not None
    return found


async def test_a_caller_without_a_name_is_anonymous(
    stub: Stub,
) -> None:
    job = (await stub.GetJob(api.GetJobRequest(job_id=1))).job
    assert (job.principal, job.tenant) == ("anonymous", "default")


async def test_the_caller_comes_from_metadata(stub: Stub) -> None:
    who = (("x-atoll-principal", "ann"), ("x-atoll-tenant", "lab"))
    job = (await stub.GetJob(api.GetJobRequest(job_id=1), metadata=who)).job
    assert (job.principal, job.tenant) == ("ann", "lab")


async def test_a_refusal_keeps_its_code_and_metadata(
    stub: Stub,
) -> None:
    error = await failure(stub.GetJob(api.GetJobRequest(job_id=NOT_FOUND)))
    found = refusal(error)
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert isinstance(found, NotFound)
    assert (found.code, found.metadata["job"]) == (ErrorCode.JOB_NOT_FOUND, "404")


async def test_a_bug_is_told_by_number_only_and_logged_under_it(
    stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    error = await failure(stub.GetJob(api.GetJobRequest(job_id=BUG)))
    status = rpc_status.from_call(cast(grpc.Call, error))
    info = error_details_pb2.ErrorInfo()
    assert status is not None
    assert status.details[0].Unpack(info)
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in (error.details() or "")
    logged = capsys.readouterr()
    assert info.metadata["error_id"] in logged.out + logged.err


async def test_rules_of_the_proto_are_checked_first(
    stub: Stub,
) -> None:
    found = refusal(await failure(stub.GetJob(api.GetJobRequest(job_id=-1))))
    assert isinstance(found, InvalidInput)
    assert [violation.field for violation in found.violations] == ["job_id"]


async def test_a_thousand_violations_still_reach_the_caller(
    stub: Stub,
) -> None:
    error = await failure(stub.GetJob(api.GetJobRequest(job_id=MANY_FAULTS)))
    found = refusal(error)
    assert isinstance(found, InvalidInput)
    assert found.violations[0].field == "jobs[0].name"
    assert 1 < len(found.violations) < 100
    assert "more)" in (error.details() or "")


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff", b"\x0b" * 10_000, b"\x0b" * 10_000 + b"\x0c" * 10_000],
    ids=["malformed", "nested 10,000 deep and open", "nested 10,000 deep"],
)
async def test_what_is_no_message_is_refused(dialled: grpc.aio.Channel, data: bytes) -> None:
    error = await failure(raw(dialled, data))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal(error).code is ErrorCode.INVALID_FIELD


async def test_64_megabytes_are_refused_before_they_are_parsed(server: GrpcServer) -> None:
    async with grpc.aio.insecure_channel(server.address, options=UNLIMITED) as dialled:
        error = await failure(raw(dialled, b"\x0b" * (64 << 20)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_streams_deliver_and_refuse(stub: Stub) -> None:
    cursors = [answer.cursor async for answer in stub.WatchJobs(api.WatchJobsRequest())]
    assert cursors == ["1", "2"]
    failing: Any = stub.WatchJobs(api.WatchJobsRequest(queue="fail"))
    assert (await failing.read()).cursor == "1"
    assert refusal(await failure(failing.read())).code is ErrorCode.QUEUE_NOT_FOUND


def calls(code: str) -> float:
    labels = {
        "rpc_system_name": "grpc",
        "rpc_method": METHOD,
        "rpc_response_status_code": code,
    }
    return REGISTRY.get_sample_value("rpc_server_call_duration_seconds_count", labels) or 0.0


@pytest.mark.parametrize(
    ("job", "code"),
    [(1, "OK"), (NOT_FOUND, "NOT_FOUND"), (BUG, "INTERNAL"), (-1, "INVALID_ARGUMENT")],
)
async def test_calls_are_counted_by_code(stub: Stub, job: int, code: str) -> None:
    before = calls(code)
    await asyncio.gather(stub.GetJob(api.GetJobRequest(job_id=job)), return_exceptions=True)
    await eventually(lambda: calls(code) == before + 1)  # counted once the answer is on its way


async def test_a_call_past_its_deadline_is_counted_as_such(
    stub: Stub,
) -> None:
    before = calls("DEADLINE_EXCEEDED")

    async def is_counted() -> bool:
        """A call that was too late before it reached the server is none to the server."""
        error = await failure(stub.GetJob(api.GetJobRequest(job_id=SLOW), timeout=0.2))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        return calls("DEADLINE_EXCEEDED") > before

    await eventually(is_counted)


async def test_health_turns_when_the_server_drains() -> None:
    async with (
        echo_server(ServiceSettings(drain_s=30)) as server,
        channel(server.address, ServiceSettings()) as dialled,
    ):
        health: Any = health_pb2_grpc.HealthStub(dialled)
        for name in ("", NAME):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        seen = health.Watch(health_pb2.HealthCheckRequest(service=NAME))
        assert (await seen.read()).status == health_pb2.HealthCheckResponse.SERVING
        stub = api_grpc.SubmissionServiceStub(dialled)
        busy = stub.WatchJobs(api.WatchJobsRequest(queue="wait"))
        await busy.read()
        drain = asyncio.create_task(server.drain())
        assert (await seen.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert not drain.done()  # the present call may end
        busy.cancel()
        seen.cancel()
        await drain


async def test_reflection_is_off_unless_asked_for(server: GrpcServer) -> None:
    method = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"

    async def codes(address: str) -> grpc.StatusCode:
        async with grpc.aio.insecure_channel(address) as dialled:
            call: Any = dialled.stream_stream(method)()
            await call.done_writing()
            return cast(grpc.StatusCode, await call.code())

    assert await codes(server.address) is grpc.StatusCode.UNIMPLEMENTED
    async with echo_server(ServiceSettings(drain_s=0, reflection=True)) as open_server:
        assert await codes(open_server.address) is grpc.StatusCode.OK


async def test_a_taken_port_is_told(server: GrpcServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    with pytest.raises(OSError, match="cannot listen"):
        async with echo_server(ServiceSettings(listen=server.address)):
            pass


def test_pings_of_our_clients_never_look_hostile_to_our_servers() -> None:
    client = dict(options.client_options(max_message_bytes=1))
    server = dict(options.server_options(max_message_bytes=1))
    least = server["grpc.http2.min_recv_ping_interval_without_data_ms"]
    assert client["grpc.keepalive_time_ms"] >= 2 * least


def test_nobody_calls_as_anonymous_outside_of_a_call() -> None:
    assert dict(outgoing_metadata()) == {
        "x-atoll-principal": "anonymous",
        "x-atoll-tenant": "default",
    }
