"""Refusals as google.rpc.Status, and back. No import of grpc: numbers and bytes are enough.

Every refusal carries ErrorInfo with its published code; InvalidInput adds BadRequest, which names
the fields.
"""

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError
from google.rpc import code_pb2, error_details_pb2, status_pb2

from atoll.core.model.errors import (
    Aborted,
    AlreadyExists,
    DomainError,
    ErrorCode,
    Exhausted,
    FailedPrecondition,
    FieldViolation,
    InvalidInput,
    NotFound,
    StaleEpoch,
    StaleSession,
    Unavailable,
)

DOMAIN: Final = "atoll"
STATUS_KEY: Final = "grpc-status-details-bin"
"""Name of the trailing metadata that carries the status."""

CODES: Final[dict[type[DomainError], int]] = {
    InvalidInput: code_pb2.INVALID_ARGUMENT,
    NotFound: code_pb2.NOT_FOUND,
    AlreadyExists: code_pb2.ALREADY_EXISTS,
    FailedPrecondition: code_pb2.FAILED_PRECONDITION,
    Aborted: code_pb2.ABORTED,
    Exhausted: code_pb2.RESOURCE_EXHAUSTED,
    Unavailable: code_pb2.UNAVAILABLE,
}
_CLASSES: Final = {number: kind for kind, number in CODES.items()}
_NEAREST: Final[dict[type[DomainError], ErrorCode]] = {
    InvalidInput: ErrorCode.INVALID_FIELD,
    NotFound: ErrorCode.JOB_NOT_FOUND,
    AlreadyExists: ErrorCode.REQUEST_REUSED,
    FailedPrecondition: ErrorCode.WRONG_STATE,
    Aborted: ErrorCode.ETAG_MISMATCH,
    Exhausted: ErrorCode.TOO_LARGE,
    Unavailable: ErrorCode.UNAVAILABLE,
}
_BARE: Final = {
    code_pb2.UNAVAILABLE: ErrorCode.UNAVAILABLE,
    code_pb2.DEADLINE_EXCEEDED: ErrorCode.TIMED_OUT,
}


def code_of(error: DomainError) -> int:
    """Number of the gRPC status code of a refusal."""
    return next(
        (CODES[kind] for kind in type(error).__mro__ if kind in CODES), code_pb2.FAILED_PRECONDITION
    )


def status_of(error: DomainError) -> status_pb2.Status:
    """The whole status of a refusal."""
    status = status_pb2.Status(code=code_of(error), message=error.message)
    info = error_details_pb2.ErrorInfo(
        reason=error.code.value, domain=DOMAIN, metadata=error.metadata
    )
    status.details.add().Pack(info)
    if error.violations:
        status.details.add().Pack(_bad_request(error.violations))
    if error.code is ErrorCode.BOOKING_REFUSED:
        _add_refusal(status, error)
    return status


def error_of(status: status_pb2.Status) -> DomainError | None:
    """The refusal that a status tells of; None when it is none of ours."""
    info = error_details_pb2.ErrorInfo()
    if not any(detail.Unpack(info) for detail in status.details) or info.domain != DOMAIN:
        return None
    kind = _CLASSES.get(status.code)
    return None if kind is None else _rebuilt(kind, status, info)


def error_of_call(
    code: int, details: str, trailing_metadata: Iterable[tuple[str, str | bytes]]
) -> DomainError | None:
    """The refusal behind a failed call.

    `code` is the number of its status code. None when the failure is neither a refusal of ours nor
    a service that cannot be reached or is too slow.
    """
    for key, data in trailing_metadata:
        if key == STATUS_KEY and isinstance(data, bytes) and (status := _parsed(data)):
            return error_of(status) or _bare(code, details)
    return _bare(code, details)


def _bare(code: int, details: str) -> DomainError | None:
    reason = _BARE.get(code)
    return None if reason is None else Unavailable(details, code=reason)


def _parsed(data: bytes) -> status_pb2.Status | None:
    try:
        return status_pb2.Status.FromString(data)
    except DecodeError:
        return None


def _bad_request(violations: Iterable[FieldViolation]) -> error_details_pb2.BadRequest:
    return error_details_pb2.BadRequest(
        field_violations=[
            error_details_pb2.BadRequest.FieldViolation(
                field=violation.field, description=violation.message, reason=violation.code.value
            )
            for violation in violations
        ]
    )


def _rebuilt(
    kind: type[DomainError], status: status_pb2.Status, info: error_details_pb2.ErrorInfo
) -> DomainError:
    code = _error_code(info.reason, _NEAREST[kind])
    if kind is InvalidInput:
        return InvalidInput(_violations(status, code), code=code)
    if code is ErrorCode.STALE_EPOCH:
        return StaleEpoch(status.message)
    if code is ErrorCode.STALE_SESSION:
        return StaleSession(status.message)
    if code is ErrorCode.BOOKING_REFUSED:
        return _refused(status)
    metadata = dict(info.metadata)
    if code.value != info.reason:
        metadata["reason"] = info.reason  # published by a newer version
    return kind(status.message, code=code, metadata=metadata)


def _add_refusal(status: status_pb2.Status, error: DomainError) -> None:
    # Late: most programs never book anything, and are to start quickly.
    from atoll.core.model.refusal import BookingRefused
    from atoll.wire.refusal import refusal_to_proto

    if isinstance(error, BookingRefused):
        status.details.add().Pack(refusal_to_proto(error))


def _refused(status: status_pb2.Status) -> DomainError:
    from atoll.wire.refusal import refused_of

    return refused_of(status.message, status.details)


def _violations(status: status_pb2.Status, code: ErrorCode) -> tuple[FieldViolation, ...]:
    request = error_details_pb2.BadRequest()
    found = any(detail.Unpack(request) for detail in status.details)
    if not found or not request.field_violations:
        return (FieldViolation("", status.message, code),)
    return tuple(
        FieldViolation(entry.field, entry.description, _error_code(entry.reason, code))
        for entry in request.field_violations
    )


def _error_code(text: str, otherwise: ErrorCode) -> ErrorCode:
    return ErrorCode(text) if text in ErrorCode.__members__ else otherwise
