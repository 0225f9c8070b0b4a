"""Forecasts and spending as pictures."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from atoll.cli.burst_chart import bands_of
from atoll.cli.burst_text import asked_for, whose
from atoll.cli.pictures import clock_axis, plots, saved, time_of
from atoll.client.burst_views import BurstDecisionInfo, ForecastInfo, QuantileInfo

ROW_IN: Final = 3.0
MOST_SERIES: Final = 8
PAST, MEDIAN, BAND, CAPACITY, NOW = "#1b1f24", "#1f6fb2", "#8fbbe0", "#c0392b", "#7a7f87"
_MARKS: Final = {"rent": ("^", "#2c7d4f", "rented"), "drain": ("v", "#e07b00", "drained")}


def draw_forecast(
    found: Sequence[ForecastInfo], told: Sequence[BurstDecisionInfo], path: Path
) -> None:
    """Write a PNG: bands against what was and what there is, with the decisions."""
    shown = list(found[:MOST_SERIES])
    figure, axes = plots([ROW_IN for _ in shown] or [ROW_IN])
    for series, axis in zip(shown, axes, strict=False):
        _past(axis, series)
        _future(axis, series)
        _decisions(axis, series, told)
        _finish(axis, series)
    if shown:
        figure.legend(*_legend(axes), loc="outside upper center", ncols=7, frameon=False)
    else:
        axes[0].set_title("nothing is known yet", loc="left", fontsize=9)
    clock_axis(axes[-1])
    saved(figure, path)


def _past(axis: Any, series: ForecastInfo) -> None:
    times = [time_of(series.from_at + n * series.step_s) for n in range(len(series.actual))]
    if times:
        axis.plot(times, series.actual, color=PAST, lw=1.4, label="in use or wanted")
    axis.axvline(time_of(series.now_at), color=NOW, lw=0.8, ls=":")


def _future(axis: Any, series: ForecastInfo) -> None:
    for (low, high), alpha in zip(bands_of(series.quantiles), (0.35, 0.6), strict=False):
        axis.fill_between(
            _ahead(series, low.values), low.values, high.values, color=BAND, alpha=alpha, lw=0,
            label=f"{100 * (high.level - low.level):.0f} % band",
        )  # fmt: skip
    middle = min(series.quantiles, key=lambda each: abs(each.level - 0.5), default=None)
    if middle is not None:
        _line(axis, series, middle)
    if series.capacity:
        times = _ahead(series, series.capacity)
        axis.plot(times, series.capacity, color=CAPACITY, lw=1.2, ls="--",
                  label="there without renting")  # fmt: skip


def _line(axis: Any, series: ForecastInfo, middle: QuantileInfo) -> None:
    axis.plot(_ahead(series, middle.values), middle.values, color=MEDIAN, lw=1.6, label="median")


def _ahead(series: ForecastInfo, values: Sequence[float]) -> list[datetime]:
    return [time_of(series.now_at + (n + 1) * series.step_s) for n in range(len(values))]


def _decisions(axis: Any, series: ForecastInfo, told: Sequence[BurstDecisionInfo]) -> None:
    for action, (marker, colour, label) in _MARKS.items():
        times = [
            time_of(each.at)
            for each in told
            if each.action == action
            and each.kind in ("", series.kind)
            and each.at >= series.from_at
        ]
        if times:
            axis.plot(
                times, [0.0 for _ in times], marker, color=colour, ms=8, label=label,
                clip_on=False, zorder=5,
            )  # fmt: skip


def _finish(axis: Any, series: ForecastInfo) -> None:
    axis.set_ylim(bottom=0)
    axis.yaxis.get_major_locator().set_params(integer=True)
    quality = f", {100 * series.coverage_90:.0f} % inside the 90 % band" * bool(series.coverage_90)
    name = f"{asked_for(series.kind)}, {whose(series.queue)}"
    axis.set_title(f"{name}: {series.model or 'no model yet'}{quality}", loc="left", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)


def _legend(axes: Sequence[Any]) -> tuple[list[Any], list[str]]:
    found: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
    return list(found.values()), list(found)
