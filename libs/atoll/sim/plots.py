"""Pictures of a record: utilisation over time, waits by size, fairness of queues."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")  # before anything chooses what draws

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from atoll.sim.record import Record
from atoll.sim.report import fairness, timeline, waits_by_size

POINTS: Final = 1000
INCHES: Final = (10.0, 5.5)
DPI: Final = 120
MOST_QUEUES: Final = 24
BLUE, ORANGE, GREY, RED, GREEN = "#1f6fb2", "#e07b00", "#b9c0c7", "#b3262a", "#2c7d4f"
FLOOR_S: Final = 1.0
"""Shorter waits are drawn as this long."""
TICKS_S: Final = (1, 10, 60, 600, 3_600, 36_000, 86_400, 864_000)
STEPS: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


def draw(record: Record, folder: Path) -> list[Path]:
    """utilisation.png, waits.png and fairness.png; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _save(_utilisation(record), folder / "utilisation.png"),
        _save(_waits(record), folder / "waits.png"),
        _save(_fairness(record), folder / "fairness.png"),
    ]


def span(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 0.5:
        return "0 s"
    scale, unit = next(((s, unit) for s, unit in STEPS if seconds >= s), STEPS[-1])
    return f"{seconds / scale:.2g} {unit}"


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    return path


def _utilisation(record: Record) -> Figure:
    figure, (above, below) = plt.subplots(
        2, 1, figsize=INCHES, sharex=True, height_ratios=(3, 1), layout="constrained"
    )
    points = np.linspace(0.0, max(record.ended, 1.0), POINTS)
    scale, unit = _scale(record.ended)
    one = 100 if record.unit == "device blocks" else 1000
    name = "devices" if record.unit == "device blocks" else "CPUs"
    held, up = timeline(record, points) / one, _capacity(record, points) / one
    above.fill_between(points / scale, held, color=BLUE, alpha=0.75, label="held by runs")
    above.step(points / scale, up, color=RED, linewidth=1.4, where="post", label="up")
    above.set_ylabel(name)
    above.set_ylim(0, 1.12 * max(float(up.max(initial=1.0)), 1.0))
    above.set_title("Utilisation over time")
    above.legend(loc="upper right", ncols=2, frameon=False)
    at = np.array([sample.at for sample in record.samples]) / scale
    below.plot(at, [s.queued for s in record.samples], color=ORANGE, label="jobs queued")
    below.plot(at, [s.running for s in record.samples], color=GREEN, label="jobs running")
    below.set_ylabel("jobs")
    below.set_ylim(bottom=0)
    below.set_xlabel(f"time since the start ({unit})")
    below.legend(loc="upper right", ncols=2, frameon=False)
    _tidy(above, below)
    return figure


def _waits(record: Record) -> Figure:
    figure, axes = plt.subplots(figsize=INCHES, layout="constrained")
    classes = waits_by_size(record)
    names = [f"{name}\n{waits['jobs']} jobs" for name, waits in classes.items()]
    places = np.arange(len(names))
    for shift, (key, colour) in enumerate((("p50", BLUE), ("p90", ORANGE), ("p99", RED))):
        values = [float(waits[key] or 0.0) for waits in classes.values()]
        heights = [max(value, FLOOR_S) for value in values]
        bars = axes.bar(places + (shift - 1) * 0.28, heights, 0.27, color=colour, label=key)
        axes.bar_label(bars, [span(value) for value in values], padding=2, fontsize=7, rotation=90)
    axes.set_yscale("log")
    axes.set_ylim(FLOOR_S / 2, 12 * max(_longest(classes), 10 * FLOOR_S))
    axes.yaxis.set_major_locator(FixedLocator(TICKS_S))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: span(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(places, names)
    axes.set_xlabel("devices of a job" if record.unit == "device blocks" else "CPUs of a job")
    axes.set_ylabel("wait until the first start")
    axes.set_title("Waits by size")
    axes.legend(loc="upper left", ncols=3, frameon=False)
    _tidy(axes)
    return figure


def _fairness(record: Record) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=INCHES, sharey=True, layout="constrained")
    queues = list(fairness(record).items())
    queues = sorted(queues, key=lambda item: -item[1]["share"])[:MOST_QUEUES][::-1]
    names = [f"{name} ({numbers['jobs']})" for name, numbers in queues]
    height = min(0.8, 0.16 * len(names))
    shares = [100 * numbers["share"] for _, numbers in queues]
    bars = left.barh(names, shares, height, color=BLUE)
    left.bar_label(bars, [f"{share:.1f} %" for share in shares], padding=3)
    left.margins(x=0.2)
    left.set_xlabel("% of what was held")
    left.set_ylabel("queue (jobs)")
    waits = [float(numbers["wait_s"]["mean"] or 0.0) for _, numbers in queues]
    bars = right.barh(names, waits, height, color=ORANGE)
    right.bar_label(bars, [span(wait) for wait in waits], padding=3)
    right.margins(x=0.2)
    right.xaxis.set_major_locator(MaxNLocator(5))
    right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: span(value)))
    right.set_xlabel("mean wait until the first start")
    figure.suptitle("Fairness: what queues got, and how long they waited")
    _tidy(left, right)
    return figure


def _capacity(record: Record, points: np.ndarray) -> np.ndarray:
    times = np.array([at for at, _ in record.capacity] or [0.0])
    units = np.array([units for _, units in record.capacity] or [0])
    found = np.searchsorted(times, points, side="right") - 1
    return np.asarray(units[np.maximum(found, 0)], dtype=float)


def _longest(classes: Mapping[str, Any]) -> float:
    return max((float(waits["p99"] or 0.0) for waits in classes.values()), default=0.0)


def _scale(seconds: float) -> tuple[float, str]:
    return next(((s, unit) for s, unit in STEPS if seconds >= 2 * s), STEPS[-1])


def _tidy(*axes: Axes) -> None:
    for each in axes:
        each.grid(visible=True, color=GREY, linewidth=0.5, alpha=0.6)
        each.set_axisbelow(True)
        each.spines[["top", "right"]].set_visible(False)
