"""Forecasts as people are shown them: kept in the store by the leader, read on any replica."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.ports.store.burst import BurstStore

KEPT_AS: Final = "series"
DAY_S: Final = 86_400.0
MOST_S: Final = 366 * DAY_S


@dataclass(frozen=True, slots=True)
class Series:
    """One forecast."""

    kind: str
    queue: str
    """Empty: all together."""
    from_at: float
    """Unix seconds of the first past value."""
    step_s: float
    actual: tuple[float, ...]
    levels: tuple[float, ...]
    quantiles: tuple[tuple[float, ...], ...]
    """By level; the first value is a step after the last past one."""
    capacity: tuple[float, ...]
    coverage_90: float
    mase: float
    model: str
    fitted_at: float
    message: str


def series_to_bytes(series: Sequence[Series]) -> bytes:
    """For the store."""
    return json.dumps([asdict(each) for each in series]).encode()


def series_from_bytes(kept: bytes | None) -> list[Series]:
    """What was written; none for what another version wrote."""
    try:
        return [_read(each) for each in json.loads(kept or b"[]")]
    except (ValueError, TypeError, KeyError):
        return []


async def forecasts(
    store: BurstStore, *, kind: str, queue: str, horizon_s: float, past_s: float
) -> list[Series]:
    """The last forecasts of a queue, cut to what was asked for; 0 seconds: a day."""
    for field, value in (("horizon_s", horizon_s), ("past_s", past_s)):
        if not 0 <= value <= MOST_S:
            raise InvalidInput((FieldViolation(field, "is not in 0 .. a year"),))
    found = series_from_bytes(await store.memory(KEPT_AS))
    return [
        _cut(each, horizon_s=horizon_s, past_s=past_s)
        for each in found
        if each.queue == queue and kind in {"", each.kind}
    ]


def _read(told: dict[str, object]) -> Series:
    found = Series(**told)  # type: ignore[arg-type]
    return replace(
        found,
        actual=tuple(found.actual),
        levels=tuple(found.levels),
        quantiles=tuple(tuple(each) for each in found.quantiles),
        capacity=tuple(found.capacity),
    )


def _cut(series: Series, *, horizon_s: float, past_s: float) -> Series:
    # A day is 24 steps of the forecast, also where its hour lasts less than one.
    day = 24
    past = int(past_s // series.step_s) if past_s else day
    ahead = int(horizon_s // series.step_s) if horizon_s else day
    dropped = max(0, len(series.actual) - past)
    return replace(
        series,
        from_at=series.from_at + dropped * series.step_s,
        actual=series.actual[dropped:],
        quantiles=tuple(each[:ahead] for each in series.quantiles),
        capacity=series.capacity[:ahead],
    )
