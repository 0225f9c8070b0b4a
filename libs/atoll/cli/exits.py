"""Exit codes, which scripts rely on, and what becomes of an error."""

from typing import Final

from atoll.core.model.errors import (
    Aborted,
    AlreadyExists,
    DomainError,
    ErrorCode,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    Unavailable,
)
from atoll.core.model.lifecycle import JobState

OK: Final = 0
INTERNAL: Final = 1
USAGE: Final = 2
INVALID_SPEC: Final = 3
NOT_ALLOWED: Final = 4
UNAVAILABLE: Final = 5
NEVER_FITS: Final = 6
STILL_PENDING: Final = 7
JOB_FAILED: Final = 100
NOT_FINISHED: Final = 101
NOT_FOUND: Final = 102
CANCELLED: Final = 103

_BY_CODE: Final = {
    ErrorCode.NEVER_FITS: NEVER_FITS,
    ErrorCode.QUEUE_FULL: NOT_ALLOWED,
    ErrorCode.BUDGET_SHORT: NOT_ALLOWED,
    ErrorCode.TOO_LARGE: INVALID_SPEC,
    ErrorCode.TIMED_OUT: UNAVAILABLE,
}
_BY_CLASS: Final[tuple[tuple[type[DomainError], int], ...]] = (
    (InvalidInput, INVALID_SPEC),
    (NotFound, NOT_FOUND),
    (FailedPrecondition, NOT_ALLOWED),
    (AlreadyExists, NOT_ALLOWED),
    (Aborted, NOT_ALLOWED),
    (Unavailable, UNAVAILABLE),
)
_ENDED: Final = {
    JobState.SUCCEEDED: OK,
    JobState.FAILED: JOB_FAILED,
    JobState.CANCELLED: CANCELLED,
}


def of_error(error: DomainError) -> int:
    """The exit code of a refusal."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    return next((code for kind, code in _BY_CLASS if isinstance(error, kind)), UNAVAILABLE)


def of_state(state: JobState) -> int:
    """What `wait` and `logs` end with."""
    return _ENDED.get(state, NOT_FINISHED)


def of_run(state: JobState, exit_code: int | None) -> int:
    """What `run` ends with: the job's own exit code where there is one."""
    if state is JobState.FAILED and exit_code is not None and 0 < exit_code < 256:
        return exit_code
    return of_state(state)
