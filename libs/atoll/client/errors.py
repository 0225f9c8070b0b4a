"""What calls raise: the refusals of the domain, and a few things that only a caller meets."""

from collections.abc import Mapping
from typing import cast

import grpc

from atoll.core.model.errors import DomainError, ErrorCode, Exhausted, Unavailable
from atoll.wire.errors import error_of_call


class TimedOut(Unavailable, TimeoutError):
    """The time that the caller gave is over; nothing is known to have failed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=ErrorCode.TIMED_OUT)


class LogsDropped(Unavailable):
    """The stream of output broke before its end. `offsets` is where to go on, by rank."""

    def __init__(self, message: str, offsets: Mapping[int, int]) -> None:
        super().__init__(message, code=ErrorCode.UNAVAILABLE)
        self.offsets = dict(offsets)

    @property
    def offset(self) -> int:
        """Where to go on when the output of one task was asked for."""
        return next(iter(self.offsets.values()), 0)


class CallFailed(Exception):
    """The server failed, or does not know the call; `status` is gRPC's name of what happened."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class NotAllowed(CallFailed):
    """The caller is not who may do this."""


def refusal(error: grpc.RpcError, address: str) -> DomainError | CallFailed:
    """What a failed call to `address` tells."""
    call = cast("grpc.Call", error)
    code, details = call.code(), call.details() or ""
    found = error_of_call(int(code.value[0]), details, call.trailing_metadata() or ())
    if found is not None:
        return _reached(found, address)
    match code:
        case grpc.StatusCode.PERMISSION_DENIED | grpc.StatusCode.UNAUTHENTICATED:
            return NotAllowed(code.name, details)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return Exhausted(details, code=ErrorCode.TOO_LARGE)
        case _:
            return CallFailed(code.name, details)


def _reached(error: DomainError, address: str) -> DomainError:
    if error.metadata or error.code not in (ErrorCode.UNAVAILABLE, ErrorCode.TIMED_OUT):
        return error
    metadata = {"address": address}
    if error.code is ErrorCode.TIMED_OUT:
        return Unavailable(f"{address} did not answer in time", code=error.code, metadata=metadata)
    return Unavailable(
        f"cannot reach {address} ({_why(error.message)})", code=error.code, metadata=metadata
    )


def _why(details: str) -> str:
    # gRPC tells the same in several layers; the innermost says what happened.
    if "handshake failed" in details.lower():
        return "no TLS that both sides trust; ATOLL_TLS=off for a server without, ATOLL_TLS_CA"
    return details.rpartition(": ")[2].strip(" []") or "no connection"
