"""What asyncpg's errors mean for whoever asked the store."""

import contextlib
from collections.abc import Iterator
from typing import Final

import asyncpg

from atoll.core.model.errors import ErrorCode, Exhausted, FailedPrecondition
from atoll.ports.store.common import Contended, StoreUnavailable, UnknownOutcome

WHOLE_DEVICE_INDEX: Final = "one_owner"
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)

CONTENDED: Final = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
)
DISCONNECTED: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
)
AWAY: Final = (
    *DISCONNECTED,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.InvalidTransactionStateError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.UndefinedTableError,
)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Errors of the driver before a COMMIT was sent: nothing happened."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise meaning(error) from error


@contextlib.contextmanager
def committing() -> Iterator[None]:
    """Errors of the driver once a COMMIT may be on its way: a lost reply tells nothing."""
    try:
        yield
    except DISCONNECTED as error:
        raise UnknownOutcome(
            f"the reply to a commit was lost: {described(error)}", code=ErrorCode.UNAVAILABLE
        ) from error
    except DRIVER_ERRORS as error:
        raise meaning(error) from error


def meaning(error: Exception) -> Exception:
    """The store's error; the driver's own when it can only be a bug."""
    if isinstance(error, asyncpg.UniqueViolationError):
        return _second_owner(error)
    if isinstance(error, CONTENDED):
        return Contended(described(error))
    if isinstance(error, asyncpg.TooManyConnectionsError):
        return overloaded()
    if isinstance(error, AWAY):
        return StoreUnavailable(described(error), code=ErrorCode.UNAVAILABLE)
    return error


def overloaded() -> Exhausted:
    """No connection is free."""
    return Exhausted("all connections to the store are in use", code=ErrorCode.OVERLOADED)


def described(error: Exception) -> str:
    """The error in words; some have none of their own."""
    return str(error) or type(error).__name__


def _second_owner(error: asyncpg.UniqueViolationError) -> Exception:
    if error.constraint_name != WHOLE_DEVICE_INDEX:
        return error
    return FailedPrecondition(
        "a device that is to be taken whole has an owner", code=ErrorCode.PLAN_INVALID
    )
