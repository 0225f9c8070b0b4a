"""Errors of the domain. Codes are published as ErrorInfo.reason and never renamed."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class ErrorCode(enum.StrEnum):
    """Machine-readable reason of a refusal."""

    INVALID_FIELD = "INVALID_FIELD"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    NOT_SUPPORTED_YET = "NOT_SUPPORTED_YET"
    QUEUE_NOT_FOUND = "QUEUE_NOT_FOUND"
    JOB_NOT_FOUND = "JOB_NOT_FOUND"
    CLUSTER_NOT_FOUND = "CLUSTER_NOT_FOUND"
    NODE_NOT_FOUND = "NODE_NOT_FOUND"
    ATTEMPT_NOT_FOUND = "ATTEMPT_NOT_FOUND"
    RESERVATION_NOT_FOUND = "RESERVATION_NOT_FOUND"
    OCCURRENCE_NOT_FOUND = "OCCURRENCE_NOT_FOUND"
    RULE_NOT_FOUND = "RULE_NOT_FOUND"
    INSTANCE_NOT_FOUND = "INSTANCE_NOT_FOUND"
    OFFER_NOT_FOUND = "OFFER_NOT_FOUND"
    POLICY_NOT_FOUND = "POLICY_NOT_FOUND"
    QUEUE_EXISTS = "QUEUE_EXISTS"
    QUEUE_NOT_EMPTY = "QUEUE_NOT_EMPTY"
    RESERVATION_EXISTS = "RESERVATION_EXISTS"
    BOOKING_REFUSED = "BOOKING_REFUSED"
    BURST_REFUSED = "BURST_REFUSED"
    BUDGET_SHORT = "BUDGET_SHORT"
    REQUEST_REUSED = "REQUEST_REUSED"
    WRONG_STATE = "WRONG_STATE"
    ETAG_MISMATCH = "ETAG_MISMATCH"
    NEVER_FITS = "NEVER_FITS"
    DEADLINE_INFEASIBLE = "DEADLINE_INFEASIBLE"
    DEPENDENCY_CYCLE = "DEPENDENCY_CYCLE"
    BAD_PAGE_TOKEN = "BAD_PAGE_TOKEN"
    CURSOR_EXPIRED = "CURSOR_EXPIRED"
    TOO_LARGE = "TOO_LARGE"
    QUEUE_FULL = "QUEUE_FULL"
    STALE_EPOCH = "STALE_EPOCH"
    PLAN_INVALID = "PLAN_INVALID"
    ALREADY_HELD = "ALREADY_HELD"
    STALE_SESSION = "STALE_SESSION"
    CLUSTER_RETIRED = "CLUSTER_RETIRED"
    JOIN_REFUSED = "JOIN_REFUSED"
    CLUSTER_NOT_FENCED = "CLUSTER_NOT_FENCED"
    CLUSTER_QUARANTINED = "CLUSTER_QUARANTINED"
    NOT_LEADER = "NOT_LEADER"
    UNAVAILABLE = "UNAVAILABLE"
    OVERLOADED = "OVERLOADED"
    CONTENDED = "CONTENDED"
    AGENT_UNREACHABLE = "AGENT_UNREACHABLE"
    TIMED_OUT = "TIMED_OUT"


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field that is wrong: its path, why, and what would be right."""

    field: str
    message: str
    code: ErrorCode = ErrorCode.INVALID_FIELD


class DomainError(Exception):
    """A refusal with a code that programs can rely on."""

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        metadata: Mapping[str, str] | None = None,
        violations: tuple[FieldViolation, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.metadata = dict(metadata or {})
        self.violations = violations


class InvalidInput(DomainError):
    """The caller's input is wrong; `violations` names the fields."""

    def __init__(
        self, violations: tuple[FieldViolation, ...], *, code: ErrorCode | None = None
    ) -> None:
        first = violations[0]
        super().__init__(
            "; ".join(f"{v.field}: {v.message}" for v in violations),
            code=code or first.code,
            metadata={"field": first.field},
            violations=violations,
        )


class NotFound(DomainError):
    """The named thing does not exist."""


class AlreadyExists(DomainError):
    """The named thing exists already, with another body."""


class FailedPrecondition(DomainError):
    """The thing exists but is not in a state in which this can be done."""


class Aborted(DomainError):
    """A concurrent change won; read again and decide anew."""


class Exhausted(DomainError):
    """A bound was reached; nothing was done."""


class Unavailable(DomainError):
    """A component cannot be reached just now; trying again may help."""


class StaleEpoch(Aborted):
    """A newer leader has been elected; the plan was dropped."""

    def __init__(self, message: str = "a newer leader has been elected") -> None:
        super().__init__(message, code=ErrorCode.STALE_EPOCH)


class StaleSession(Aborted):
    """The agent's session was taken over by a newer one."""

    def __init__(self, message: str = "the session was taken over") -> None:
        super().__init__(message, code=ErrorCode.STALE_SESSION)
