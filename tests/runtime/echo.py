"""A small service over a real proto, for tests of what the runtime puts around every service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from atoll.adapters.system import SystemClock, SystemIds
from atoll.api.submission.v1 import submission_pb2 as api
from atoll.api.submission.v1 import submission_pb2_grpc as api_grpc
from atoll.core.model.errors import ErrorCode, FieldViolation, InvalidInput, NotFound
from atoll.runtime import tracing
from atoll.runtime.rpc.caller import current
from atoll.runtime.rpc.server import GrpcServer
from atoll.runtime.settings import ServiceSettings

NAME = "atoll.api.submission.v1.SubmissionService"
METHOD = f"{NAME}/GetJob"
NOT_FOUND, BUG, MANY_FAULTS, SLOW = 404, 500, 400, 3600

Context = grpc.aio.ServicerContext[Any, Any]


class Echo(api_grpc.SubmissionServiceServicer):
    """Answers with what it saw; some ids make it fail."""

    async def GetJob(self, request: api.GetJobRequest, context: Context) -> api.GetJobResponse:  # noqa: N802
        if request.job_id == NOT_FOUND:
            raise NotFound("no job", code=ErrorCode.JOB_NOT_FOUND, metadata={"job": "404"})
        if request.job_id == BUG:
            raise ZeroDivisionError("a bug with a secret")
        if request.job_id == MANY_FAULTS:
            raise InvalidInput(
                tuple(FieldViolation(f"jobs[{i}].name", "is wrong " * 9) for i in range(1_000))
            )
        if request.job_id == SLOW:
            await asyncio.sleep(SLOW)
        caller = current.get()
        return api.GetJobResponse(
            job=api.Job(
                id=request.job_id,
                principal=caller.principal,
                tenant=caller.tenant,
                trace=tracing.traceparent(),
            )
        )

    async def WatchJobs(  # noqa: N802
        self, request: api.WatchJobsRequest, context: Context
    ) -> AsyncIterator[api.WatchJobsResponse]:
        yield api.WatchJobsResponse(cursor="1")
        if request.queue == "fail":
            raise NotFound("no queue", code=ErrorCode.QUEUE_NOT_FOUND)
        if request.queue == "wait":
            await asyncio.sleep(SLOW)
        yield api.WatchJobsResponse(cursor="2")


def services() -> dict[str, Any]:
    """What a server is to serve."""
    make: Any = Echo  # the other calls stay unimplemented
    return {NAME: lambda server: api_grpc.add_SubmissionServiceServicer_to_server(make(), server)}


@asynccontextmanager
async def echo_server(settings: ServiceSettings | None = None) -> AsyncIterator[GrpcServer]:
    """A server of Echo, drained at once in the end."""
    server = GrpcServer(
        settings or ServiceSettings(drain_s=0), services(), clock=SystemClock(), ids=SystemIds()
    )
    await server.start()
    try:
        yield server
    finally:
        await server.drain()
