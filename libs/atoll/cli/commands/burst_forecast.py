"""`atoll burst forecast`."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.booking_keys import print_plain
from atoll.cli.burst_chart import STYLES, chart
from atoll.cli.burst_picture import draw_forecast
from atoll.cli.burst_text import asked_for, whose
from atoll.cli.moments import length
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.render import print_lines
from atoll.cli.words import ago, span
from atoll.client.burst_views import BurstDecisionInfo, ForecastInfo

MOST_DECISIONS = 200


def forecast(
    *,
    kind: str = "",
    queue: Annotated[str, Parameter(name=("--queue", "-q"))] = "",
    ahead: str = "24h",
    past: str = "24h",
    png: Path | None = None,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show the demand to come, with bands, against what was and what there is.

    `atoll burst forecast --kind H100 --ahead 12h`, `atoll burst forecast --png forecast.png`.

    Args:
        kind: Only this kind of accelerator.
        queue: Of this queue; of all together if not given.
        ahead: How far into the future.
        past: How far into the past.
        png: Write a picture there instead.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        found = client.burst.forecast(
            kind,
            queue=queue,
            horizon_s=length(ahead, "ahead"),
            past_s=length(past, "past"),
        )
        drawn = png is not None or output in ("table", "wide")
        told = client.burst.explain(most=MOST_DECISIONS).decisions if drawn and found else ()
    if png is not None:
        draw_forecast(found, told, png)
        print(f"{png} written")
    elif output in ("table", "wide"):
        print_lines(lines(found, told, now=SystemClock().now()), STYLES)
    elif output == "name":
        print("\n".join(each.kind for each in found))
    else:
        print_plain(found, output)
    return exits.OK


def lines(
    found: list[ForecastInfo], told: Iterable[BurstDecisionInfo], *, now: float
) -> Iterator[str]:
    """All series, each as a chart with what is known of how good it is."""
    if not found:
        yield "nothing is forecast yet: the first forecast comes a minute after the start"
        yield "it is of accelerators that jobs ask for, and of the processors of those without"
        return
    columns, decisions = shutil.get_terminal_size().columns, tuple(told)
    for number, each in enumerate(found):
        if number:
            yield ""
        yield f"{asked_for(each.kind)}, {whose(each.queue)}: {_summary(each)}"
        yield from chart(each, decisions, columns=columns)
        yield _quality(each, now)
        if each.message:
            yield each.message


def _summary(series: ForecastInfo) -> str:
    parts = [f"{series.actual[-1]:g} in use or wanted"] if series.actual else []
    peaks = [max(each.values) for each in series.quantiles if each.values]
    if peaks:
        ahead = span(len(series.quantiles[0].values) * series.step_s)
        low, high = peaks[0], peaks[-1]
        parts.append(f"a peak of {low:.3g} to {high:.3g} in the next {ahead}")
    if series.capacity:
        parts.append(f"{series.capacity[0]:g} there without renting")
    return ", ".join(parts)


def _quality(series: ForecastInfo, now: float) -> str:
    fitted = f", fitted {ago(series.fitted_at, now)} ago" if series.fitted_at else ""
    parts = [f"model: {series.model or 'none yet'}{fitted}"]
    if series.coverage_90:
        parts.append(f"{100 * series.coverage_90:.0f} % of the past were inside the 90 % band")
    if series.mase:
        parts.append(f"error {series.mase:.2f} times that of repeating the day before")
    return "; ".join(parts)
