"""Calls with one answer between services in one process."""

from collections.abc import Awaitable, Callable
from typing import Any

from atoll.core.model.errors import DomainError, ErrorCode, Unavailable
from atoll.sim.service.link import as_call_error


class UnaryChannel:
    """As much of a channel as a stub of unary calls needs; `servicer` None: nobody listens."""

    def __init__(self, servicer: object | None) -> None:
        self._servicer = servicer

    def unary_unary(self, method: str, *_: object, **__: object) -> Callable[..., Awaitable[Any]]:
        """Calls the method of that name of the servicer."""
        name = method.rpartition("/")[2]

        async def call(request: object, **_: object) -> Any:
            try:
                if self._servicer is None:
                    raise Unavailable("nobody listens there", code=ErrorCode.UNAVAILABLE)
                return await getattr(self._servicer, name)(request, None)
            except DomainError as error:
                raise as_call_error(error) from error

        return call

    async def close(self) -> None:
        """Nothing is open."""
