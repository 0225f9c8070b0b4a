"""What every leader's loops have in common: they go on while the lease holds, and no longer."""

from collections.abc import Awaitable, Callable
from typing import Final

from atoll.core.model.errors import StaleEpoch
from atoll.ports.clock import Clock
from atoll.ports.election import Election, Leadership
from atoll.runtime import logs
from atoll.runtime.loops import Backoff

log = logs.logger(__name__)

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


async def stand(
    election: Election,
    lead: Callable[[Leadership], Awaitable[None]],
    *,
    ended: Callable[[], bool],
    clock: Clock,
) -> None:
    """Campaign, lead, step down, and again, for as long as the process lives.

    `ended` is called after each term, and says whether anything was led in it.
    """
    refused = 0
    while True:
        leadership = await election.campaign()
        log.info("elected", epoch=str(leadership.epoch))
        led = False
        try:
            await lead(leadership)
        except* (StaleEpoch, LeadershipLost) as why:
            log.warning("stepping down", why=str(why.exceptions[0]))
        finally:
            led = ended()
            await leadership.resign()
        refused = 0 if led else refused + 1
        if refused:
            # etcd was wiped or restored: every election ends like this one for a while.
            await clock.sleep(RETRY.wait_s(refused, 0.0))
