"""Draws forecasts against what came."""

from pathlib import Path
from typing import Final

import matplotlib as mpl

mpl.use("Agg")  # before anything chooses what draws

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from atoll.sim.forecast import Judged, Replayed

BLUE: Final = "#1f5fa8"
BLACK: Final = "#222222"
RED: Final = "#c23b3b"
BANDS: Final = ((0.05, 0.95, 0.18, "5 to 95 %"), (0.25, 0.75, 0.35, "25 to 75 %"))
"""Levels of the ends, opacity, name."""


def draw(path: Path, replayed: Replayed) -> None:
    """One row per cluster: what was used, and the bands of the forecasts one after the other."""
    clusters: dict[str, list[Judged]] = {}
    for one in replayed.judged:
        clusters.setdefault(one.forecast.key.queue, []).append(one)
    rows = len(clusters)
    figure, axes = plt.subplots(
        rows, 1, figsize=(11, 1.1 + 1.7 * rows), squeeze=False, layout="constrained"
    )
    for axis, (name, judged) in zip(axes[:, 0], sorted(clusters.items()), strict=True):
        _cluster(axis, name, judged)
    axes[0, 0].legend(loc="upper right", ncols=4, frameon=False, fontsize=8)
    axes[-1, 0].set_xlabel("days since the start of the trace")
    figure.suptitle("GPUs in use: forecasts made before each midnight, and what came")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _cluster(axis: Axes, name: str, judged: list[Judged]) -> None:
    for place, one in enumerate(judged):
        made = one.forecast
        days = (made.at_s / 3600 + 1 + np.arange(len(one.actual))) / 24
        for low, high, opacity, label in BANDS:
            axis.fill_between(
                days,
                made.at(low),
                made.at(high),
                color=BLUE,
                alpha=opacity,
                linewidth=0,
                label=None if place else label,
            )
        axis.plot(days, made.median, color=BLUE, label=None if place else "median")
        axis.plot(days, one.actual, color=BLACK, linewidth=1, label=None if place else "in use")
        axis.axvline(float(days[0]), color=RED, linewidth=0.4, alpha=0.6)
    axis.set_ylim(bottom=0)
    axis.set_ylabel(name, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
