"""What every leader's loops have in common: they go on while the lease holds, and no longer."""

from collections.abc import Awaitable, Callable
from typing import Final

from atoll.ports.clock import Clock
from atoll.ports.election import Leadership
from atoll.runtime.loops import Backoff

RETRY: Final = Backoff(first_s=0.05, most_s=2.0)


class LeadershipLost(Exception):
    """The lease is over, or may be."""


async def until_lost(leadership: Leadership) -> None:
    """Raises LeadershipLost when the lease is over."""
    await leadership.lost()
    raise LeadershipLost("the lease is over")


async def repeat(
    leadership: Leadership,
    step: Callable[[], Awaitable[bool]],
    *,
    wait: Callable[[], Awaitable[None]],
    clock: Clock,
) -> None:
    """Wait and take a step, again and again; later each time that a step returns False.

    Raises LeadershipLost when the lease may be over, and whatever a step raises.
    """
    failures = 0
    while True:
        await wait()
        if not leadership.valid():
            raise LeadershipLost("the lease may be over")
        if await step():
            failures = 0
            continue
        failures += 1
        await clock.sleep(RETRY.wait_s(failures, 0.0))
