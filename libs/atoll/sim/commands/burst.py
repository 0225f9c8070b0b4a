"""`atoll sim burst`."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.sim.readers.elasticflow_raw import read_raw
from atoll.sim.renting.account import no_longer, numbers_of, report, savings
from atoll.sim.renting.play import play
from atoll.sim.renting.setting import Setting, Wish, setting_of, windows_in

ALL: Final = "all"
COLUMNS: Final = ("cost", "mean_wait_s", "p95_wait_s", "p95_queued_s", "used", "above_budget")


def burst(
    *,
    cluster: int | None = None,
    clusters: str | None = None,
    traces: Annotated[Path, Parameter(env_var="ATOLL_TRACES")],
    seed: int = 0,
    capacity_quantile: float = 0.9,
    budget_per_hour: float = 0.0,
    hour_of_delay: float = 1.0,
    work_error: float = 0.5,
    forecast: bool = True,
) -> int:
    """Rent for an ElasticFlow cluster that is too small at its peaks: the broker and fixed waits.

    The broker decides as the service does; its peers rent one fitting instance for each job that
    has waited 10 (5) minutes and end what has been idle for as long. All have the same jobs,
    offers, luck and budget. The last line of the output is one JSON object.

    Args:
        cluster: Number of the cluster, 1 to 10.
        clusters: Several, as in 3,4,7,8, or all.
        traces: Folder of the traces, with `elasticflow` and `spot` in it.
        seed: Of spot availability, boots, and what users believe of their jobs.
        capacity_quantile: The own cluster has what is enough for this part of the time.
        budget_per_hour: Dollars; 0: what is missing for 1 % of the time, on demand.
        hour_of_delay: Dollars that an hour of waiting of one device is worth.
        work_error: Deviation of the logarithm of expected over real run times.
        forecast: Let the broker foresee demand, too.
    """
    _check(capacity_quantile, budget_per_hour, hour_of_delay=hour_of_delay, error=work_error)
    wish = Wish(capacity_quantile, budget_per_hour, hour_of_delay, work_error, seed, forecast)
    raw, windows = read_raw(traces), windows_in(traces)
    console, found = Console(stderr=True), dict[str, Any]()
    for name in _names(cluster, clusters, sorted(raw)):
        setting = setting_of(raw[name], windows, wish)
        found[name] = _compared(name, setting, console)
        console.print(_table(name, found[name]["policies"]))
    head = report(found) | {"seed": seed, "budget": "per hour", "work_error": work_error}
    sys.stdout.write(json.dumps(head) + "\n")
    return 0


def _check(quantile: float, per_hour: float, *, hour_of_delay: float, error: float) -> None:
    if not 0 < quantile <= 1:
        raise InvalidInput((FieldViolation("capacity_quantile", "give a part of one"),))
    given = {"budget_per_hour": per_hour, "hour_of_delay": hour_of_delay, "work_error": error}
    for field, number in given.items():
        if not 0 <= number < 1e6:
            raise InvalidInput((FieldViolation(field, "give 0 or more"),))


def _names(cluster: int | None, clusters: str | None, known: list[str]) -> list[str]:
    if (cluster is None) == (clusters is None):
        raise InvalidInput((FieldViolation("cluster", "give one of --cluster and --clusters"),))
    if clusters == ALL:
        return known
    numbers = clusters.split(",") if clusters is not None else [str(cluster)]
    names = [f"cluster{number.strip():>02}" for number in numbers]
    for name in names:
        if name not in known:
            raise InvalidInput((FieldViolation("cluster", f"known are {', '.join(known)}"),))
    return names


def _compared(name: str, setting: Setting, console: Console) -> dict[str, Any]:
    policies = {}
    last = float(setting.work.submitted_s[-1])
    with Progress(console=console, transient=True) as progress:
        for rule, make in setting.rules().items():
            bar = progress.add_task(f"{name} {rule}", total=last)
            tick = partial(_advance, progress, bar)
            policies[rule] = numbers_of(play(make(), setting.world(), tick=tick), setting.per_hour)
    return {
        "devices": setting.capacity,
        "jobs": len(setting.work.run_s),
        "budget_per_hour": setting.per_hour / 1e6,
        "saving": savings(policies),
        "no_longer": no_longer(policies),
        "policies": policies,
    }


def _advance(progress: Progress, bar: TaskID, now: float) -> None:
    progress.update(bar, completed=now)


def _table(name: str, policies: dict[str, dict[str, Any]]) -> Table:
    table = Table(name, *COLUMNS)
    for rule, numbers in policies.items():
        table.add_row(rule, *(f"{numbers[column]:g}" for column in COLUMNS))
    return table
