"""Runs a whole transaction again when a concurrent one won."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from atoll.ports.clock import Clock, Ids
from atoll.ports.store.common import Contended

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.01


async def retrying(
    run: Callable[[], Awaitable[T]], *, clock: Clock, ids: Ids, attempts: int = 5
) -> T:
    """What `run` returns; it is called anew after Contended, with a growing, jittered pause.

    Raises the last Contended. Everything else, UnknownOutcome too, is for the caller at once.
    """
    for attempt in range(attempts - 1):
        try:
            return await run()
        except Contended:
            await clock.sleep(FIRST_PAUSE_S * 2**attempt * (0.5 + ids.jitter()))
    return await run()
