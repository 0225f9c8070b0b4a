"""What ends a session, and what the agent does about it."""

import grpc

from atoll.core.model.errors import DomainError, ErrorCode, Unavailable
from atoll.wire.errors import error_of_call


class SessionOver(Exception):
    """This session is of no use any more; open another."""


class GuardTooSlow(SessionOver):
    """The guard cannot stop runs before they are given up: say in Hello that there is none."""


class GuardInTime(SessionOver):
    """The control plane gives runs up later than before: say in Hello that there is a guard."""


def refusal(error: grpc.aio.AioRpcError) -> DomainError:
    """What dispatch meant when it ended the stream."""
    number: int = error.code().value[0]
    metadata = tuple((str(key), value) for key, value in error.trailing_metadata() or ())
    meant = error_of_call(number, error.details() or "", metadata)
    return meant or Unavailable(
        f"{error.code().name}: {error.details()}", code=ErrorCode.UNAVAILABLE
    )
