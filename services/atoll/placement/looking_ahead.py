"""Forecasts beside the cycles: they take a small part of the time, and fail alone."""

from collections.abc import Sequence
from typing import Final

from atoll.core.model.burst_wants import Want
from atoll.placement import telemetry
from atoll.placement.usecases.foresight import foresee
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.wants import new_wants, write_wants
from atoll.ports.clock import Clock
from atoll.ports.streams import Hints
from atoll.ports.topics import BURST
from atoll.runtime import logs

log = logs.logger(__name__)

MOST: Final = 0.05
"""Part of the time of one core."""


async def looked_ahead(leader: Leader, clock: Clock) -> float:
    """Make a forecast; the seconds for which there should be no other."""
    begun = clock.monotonic()
    try:
        await foresee(leader)
    except Exception:
        # Placement does not stand on it: the last forecast stays.
        telemetry.FORECASTS_FAILED.inc()
        log.exception("no forecast was made")
    took_s = clock.monotonic() - begun
    telemetry.observe_forecast(leader, took_s)
    return took_s / MOST


async def wanted(leader: Leader) -> tuple[Want, ...] | None:
    """What the broker is to be told, if that has changed. Takes the lock, slice by slice."""
    try:
        return await new_wants(leader)
    except Exception:
        log.exception("nobody knows what is wanted")
        return None


async def told_wants(leader: Leader, found: Sequence[Want], hints: Hints) -> None:
    """Tell the broker what could be rented for. Under the leader's lock."""
    await write_wants(leader, found)
    await hints.notify(BURST)
