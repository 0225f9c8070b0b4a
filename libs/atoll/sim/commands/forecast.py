"""`atoll sim forecast`."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from atoll.adapters.system import SystemClock
from atoll.burst.forecasting.forecaster import Forecaster
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.sim.forecast import looks, replay, trace_of
from atoll.sim.forecast_report import report, write
from atoll.sim.readers.elasticflow_raw import read_raw

MOST_HORIZON_H: Final = 168
COLUMNS: Final = ("mase", "mase_last", "coverage_90", "wape_1h", "origins")


def forecast(
    *,
    traces: Path,
    horizon_h: Annotated[int, Parameter(name="--horizon-h")] = 24,
    origins: int = 14,
    seed: int = 0,
    out: Path | None = None,
    plot: Path | None = None,
) -> int:
    """Forecast the GPUs in use of the ElasticFlow clusters, every day, by what is known then.

    The last line of the output is one JSON object. `mase` is the median over the clusters of the
    mean over the origins of the mean absolute error over that of "as 24 hours ago" in the
    history; `coverage_90` the share of the values within the band from 5 to 95 %; `wape_1h` the
    error one hour ahead over what was used; `fit_s` the mean seconds of one fit of what learns
    from all clusters. `mase_last` is for "as it is now".

    Args:
        traces: Folder of the traces, or the one in it that is named `elasticflow`.
        horizon_h: Hours ahead.
        origins: Forecasts that are judged per cluster: one a day, the last ones.
        seed: Of the simulation of demand and of the trees.
        out: Write `cluster,origin_h,ahead_h,actual,q05,q10,q25,q50,q75,q90,q95`.
        plot: Write a picture (PNG) of the bands a day ahead against what came.
    """
    _check(horizon_h, origins)
    found = [trace_of(name, jobs) for name, jobs in read_raw(traces).items()]
    console = Console(stderr=True)
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("hours", total=len(looks(found)))
        replayed = replay(
            found,
            Forecaster(seed, horizon=horizon_h),
            origins=origins,
            clock=SystemClock(),
            tick=lambda: progress.advance(bar),
        )
    numbers = report(replayed)
    console.print(_table(numbers["per_cluster"]))
    if out is not None:
        write(out, replayed)
    if plot is not None:
        from atoll.sim.forecast_plot import draw

        draw(plot, replayed)
    sys.stdout.write(json.dumps(numbers | {"horizon_h": horizon_h, "seed": seed}) + "\n")
    return 0


def _check(horizon_h: int, origins: int) -> None:
    if not 1 <= horizon_h <= MOST_HORIZON_H:
        raise InvalidInput((FieldViolation("horizon_h", f"give 1 to {MOST_HORIZON_H} hours"),))
    if origins < 1:
        raise InvalidInput((FieldViolation("origins", "give 1 or more"),))


def _table(per_cluster: dict[str, dict[str, Any]]) -> Table:
    table = Table("cluster", *COLUMNS)
    for name, numbers in per_cluster.items():
        table.add_row(name, *(f"{numbers[column]:g}" for column in COLUMNS))
    return table
