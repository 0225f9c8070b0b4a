"""What stands around one served call: its caller, span, duration, log, and its refusals.

A DomainError becomes the status that wire.errors gives it. Anything else is a fault of ours: the
caller gets INTERNAL with an id, and the log has the rest under that id.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status
from opentelemetry.trace import Span, SpanKind, StatusCode

from atoll.core.model.errors import DomainError, FieldViolation, InvalidInput
from atoll.ports.clock import Clock, Ids
from atoll.runtime import logs, metrics, tracing
from atoll.runtime.rpc import caller
from atoll.runtime.rpc.refusals import bounded_status
from atoll.wire.enums import WireError
from atoll.wire.errors import DOMAIN, code_of

log = logs.logger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]

DURATION: Final = metrics.histogram(
    "rpc_server_call_duration_seconds",
    "How long served calls took, streams from their first message to their last.",
    ("rpc_system_name", "rpc_method", "rpc_response_status_code"),
)
SYSTEM: Final = "grpc"
FAULTS: Final = frozenset({"INTERNAL", "UNKNOWN", "DATA_LOSS", "UNIMPLEMENTED", "UNAVAILABLE"})
"""Codes that are the server's fault: only these mark its span as failed."""


class CallScope:
    """Makes what stands around each call of one server."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids

    @asynccontextmanager
    async def around(self, method: str, context: Context) -> AsyncIterator[None]:
        """Serve one call inside; `method` is `package.Service/Method`."""
        begun = self._clock.monotonic()
        who = caller.caller_of(context.invocation_metadata() or (), method=method)
        token = caller.current.set(who)
        code = "OK"
        try:
            with tracing.span(
                method,
                parent=who.traceparent,
                kind=SpanKind.SERVER,
                attributes={"rpc.system.name": SYSTEM, "rpc.method": method},
                errors=False,  # which are the server's own is told by their code
            ) as span:
                try:
                    yield
                except BaseException as error:
                    code = _code_of(error, context)
                    _mark(span, code)
                    await self._refuse(error, context)
                    raise
        finally:
            caller.current.reset(token)
            DURATION.labels(SYSTEM, method, code).observe(self._clock.monotonic() - begun)

    async def _refuse(self, error: BaseException, context: Context) -> None:
        match error:
            case DomainError():
                await _abort(context, bounded_status(error))
            case WireError():
                refusal = InvalidInput((FieldViolation("request", str(error)),))
                await _abort(context, bounded_status(refusal))
            case grpc.aio.AbortError() | asyncio.CancelledError() | GeneratorExit():
                return
            case Exception():
                number = self._ids.uuid()
                log.error("call failed", error_id=number, exc_info=error)
                await _abort(context, _internal(number))
            case _:
                return


def _code_of(error: BaseException, context: Context) -> str:
    match error:
        case DomainError():
            return _name(code_of(error))
        case WireError():
            return grpc.StatusCode.INVALID_ARGUMENT.name
        case grpc.aio.AbortError():
            return _name(context.code())
        case asyncio.CancelledError() | GeneratorExit():
            return _ended_early(context)
        case _:
            return grpc.StatusCode.INTERNAL.name


def _ended_early(context: Context) -> str:
    left: float | None = context.time_remaining()  # None without a deadline, whatever the stubs say
    late = left is not None and left <= 0
    return (grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.CANCELLED).name


_NAMES: Final = {code.value[0]: code.name for code in grpc.StatusCode}


def _name(code: object) -> str:
    number = code.value[0] if isinstance(code, grpc.StatusCode) else code
    return _NAMES.get(number, "UNKNOWN") if isinstance(number, int) else "UNKNOWN"


def _mark(span: Span, code: str) -> None:
    span.set_attribute("rpc.response.status_code", code)
    if code in FAULTS:
        span.set_attribute("error.type", code)
        span.set_status(StatusCode.ERROR, code)


def _internal(number: str) -> status_pb2.Status:
    status = status_pb2.Status(
        code=grpc.StatusCode.INTERNAL.value[0],
        message=f"internal error; the service's log has it as {number}",
    )
    info = error_details_pb2.ErrorInfo(
        reason="INTERNAL", domain=DOMAIN, metadata={"error_id": number}
    )
    status.details.add().Pack(info)
    return status


async def _abort(context: Context, status: status_pb2.Status) -> NoReturn:
    await context.abort_with_status(rpc_status.to_status(status))
    raise AssertionError("abort returned")
