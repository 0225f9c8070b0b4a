"""Forecasts beside the cycles: they take a small part of the time, and fail alone."""

from typing import Final

from atoll.placement import telemetry
from atoll.placement.usecases.foresight import foresee
from atoll.placement.usecases.leader import Leader
from atoll.ports.clock import Clock
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
