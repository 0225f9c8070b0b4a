"""Spending against budgets as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from atoll.cli.burst_text import whose
from atoll.cli.moments import lasting
from atoll.cli.money import money
from atoll.cli.pictures import clock_axis, plots, saved, time_of
from atoll.cli.spend_chart import months, step_budget
from atoll.client.burst_views import SpendHistory, SpendInfo

DAY_S: Final = 86_400
TIME_IN: Final = 3.0
QUEUE_IN: Final = 0.35
MOST_QUEUES: Final = 30
SPENT, BUDGET = "#1f6fb2", "#c0392b"


def draw_spend(found: SpendHistory, path: Path) -> None:
    """Write a PNG: dollars by step against the hour's budget, months against theirs below."""
    rows = months(found)[:MOST_QUEUES]
    figure, (over_time, by_queue) = plots([TIME_IN, max(0.8, QUEUE_IN * len(rows))], sharex=False)
    _over_time(over_time, found)
    _by_queue(by_queue, rows)
    saved(figure, path)


def _over_time(axis: Any, found: SpendHistory) -> None:
    times = [time_of(found.from_at + n * found.step_s) for n in range(len(found.spent))]
    axis.bar(
        times, [float(each) for each in found.spent], width=0.9 * found.step_s / DAY_S,
        align="edge", color=SPENT, label=f"spent in {lasting(found.step_s)}",
    )  # fmt: skip
    if (bound := step_budget(found)) is not None:
        axis.axhline(float(bound), color=BUDGET, ls="--", label=f"budget, {money(bound)}")
    axis.set_title(f"{whose(found.spend.queue)}, dollars", loc="left", fontsize=9)
    axis.legend(loc="upper left", frameon=False, fontsize=8)
    axis.margins(y=0.25)
    axis.set_ylim(bottom=0)
    clock_axis(axis)
    axis.spines[["top", "right"]].set_visible(False)


def _by_queue(axis: Any, rows: Sequence[SpendInfo]) -> None:
    for number, each in enumerate(rows):
        axis.barh(number, float(each.month), height=0.6, color=SPENT)
        told = money(each.month)
        if (bound := each.budget.per_month) is not None:
            axis.plot([float(bound)] * 2, [number - 0.4, number + 0.4], color=BUDGET, lw=2)
            told = f"{told} of {money(bound)}"
        axis.text(float(each.month), number, f"  {told}", va="center", fontsize=8, parse_math=False)
    axis.set_yticks(range(len(rows)), [whose(each.queue) for each in rows], fontsize=8)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.margins(x=0.15)
    axis.set_xlim(left=0)
    axis.set_title("this month, dollars; red: its budget", loc="left", fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
