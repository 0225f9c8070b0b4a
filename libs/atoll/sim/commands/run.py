"""`atoll sim run`."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from atoll.adapters.system import SystemClock
from atoll.core.engine.timeline.track_record import Coverage
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.runtime import logs
from atoll.sim import scenario as scenarios
from atoll.sim.record import Record
from atoll.sim.report import report
from atoll.sim.scenario import Scenario
from atoll.sim.service.loop import run as run_virtually
from atoll.sim.service.simulation import Result, Simulation
from atoll.sim.service.witness import Violation
from atoll.sim.work import Work
from atoll.sim.workload import works_of

BROKEN: Final = 1
SHARED_MEMORY: Final = Path("/dev/shm")
Tick = Callable[[float, int], None]


def run(
    scenario: str,
    *,
    seed: int | None = None,
    fast: bool = False,
    etas: bool = False,
    out: Path | None = None,
    plots: Path | None = None,
    story: Path | None = None,
    log_level: str = "critical",
) -> int:
    """Run a scenario on a virtual clock, and report.

    The last line of the output is one JSON object. Ends with 1 when an invariant did not hold; the
    story that led there is told on stderr.

    Args:
        scenario: A scenario file (YAML), or the name of one that is shipped: demo, node-deaths,
            silent-agent, spot-revoked, storm.
        seed: In place of the scenario's.
        fast: Leave messages and faults out: only the core, stepped by its own plans.
        etas: With `--fast`: tell waiting jobs when they start, and how far that held. Services do
            so in any case.
        out: Folder to write jobs, runs and samples (Parquet) and the report (JSON) to.
        plots: Folder to draw utilisation, waits and fairness (PNG) to.
        story: File to write what happened to, one line each.
        log_level: Least severe messages of the services to log on stderr.
    """
    given = scenarios.load(scenario)
    if seed is not None:
        given = given.model_copy(update={"seed": seed})
    logs.configure(log_level, form="console", service="sim")
    works = works_of(given)
    begun = SystemClock().monotonic()
    with _progress(len(works)) as tick:
        if fast:
            record, more, violation = *_run_fast(given, works, tick, etas=etas), None
        else:
            record, more, violation = _run(given, works, tick, story=story)
    took_s = SystemClock().monotonic() - begun
    numbers = _numbers(given, record) | more
    _write(record, numbers, out=out, plots=plots)
    speed = {"wall_s": round(took_s, 2), "days_per_minute": _pace(record, took_s)}
    console = Console(stderr=True)
    console.print(_table(numbers | speed))
    if violation is not None:
        _accuse(console, given, violation)
    sys.stdout.write(json.dumps(numbers) + "\n")
    return 0 if violation is None else BROKEN


def _run(
    given: Scenario, works: Sequence[Work], tick: Tick, *, story: Path | None
) -> tuple[Record, dict[str, Any], Violation | None]:
    with tempfile.TemporaryDirectory(
        prefix="atoll-sim-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    ) as folder:
        result = run_virtually(Simulation(given, works, Path(folder), on_progress=tick).run())
    if story is not None:
        story.write_text("".join(f"{line}\n" for line in result.story))
    return result.record, _seen(result), result.violation


def _run_fast(
    given: Scenario, works: Sequence[Work], tick: Tick, *, etas: bool
) -> tuple[Record, dict[str, Any]]:
    if given.faults:
        raise InvalidInput((FieldViolation("faults", "need messages: leave `--fast` out"),))
    from atoll.sim.driver import Driver
    from atoll.sim.fleet import fleet
    from atoll.sim.foretelling import Foretelling
    from atoll.sim.service import settings as told

    described = told.clusters(given)
    done = 0

    def ended(jobs: int) -> None:
        nonlocal done
        done += jobs
        tick(0.0, done)

    driver = Driver(
        fleet({name: each.nodes for name, each in described.items()}),
        told.plane_settings(given.settings).policies,
        seed=given.seed,
        queues=list(told.queues(given, works)),
        on_progress=ended,
        sample_s=given.sample,
        foretelling=Foretelling() if etas else None,
    )
    record = driver.run([replace(work) for work in works])
    foretelling = driver.foretelling
    return record, _etas(foretelling.coverage()) if foretelling is not None else {}


def _seen(result: Result) -> dict[str, Any]:
    violation = result.violation
    return {
        "faults": result.happened,
        "hit": result.hit,
        "ended": result.ended,
        "refused": result.refused,
        "checks": result.checks,
        "events": result.turns,
        "terms": result.leaders,
        **_etas(result.etas),
        "violation": None if violation is None else f"{violation.invariant}: {violation.what}",
    }


def _etas(told: Coverage | None) -> dict[str, Any]:
    if told is None or not told.count:
        return {"eta_starts": 0}
    return {
        "eta_starts": told.count,
        "eta_coverage_p50": round(told.within[0], 4),
        "eta_coverage_p90": round(told.within[1], 4),
        "eta_abs_error_s": round(told.error_s, 1),
    }


def _numbers(given: Scenario, record: Record) -> dict[str, Any]:
    return {"seed": given.seed} | report(record)


def _write(
    record: Record, numbers: dict[str, Any], *, out: Path | None, plots: Path | None
) -> None:
    if out is not None:
        from atoll.sim.export import write

        write(record, numbers, out)
    if plots is not None:
        from atoll.sim.plots import draw

        draw(record, plots)


def _pace(record: Record, took_s: float) -> float:
    return round(record.ended / 86_400 / max(took_s / 60, 1e-9), 2)


@contextmanager
def _progress(jobs: int) -> Iterator[Tick]:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} jobs"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("day 0.0", total=jobs)

        def tick(at_s: float, done: int) -> None:
            bar.update(task, completed=done, description=f"day {at_s / 86_400:.1f}")

        yield tick


def _table(numbers: dict[str, Any]) -> Table:
    table = Table(show_header=False, box=None)
    for key, value in numbers.items():
        if key not in ("waits_by_size", "queues"):
            table.add_row(key, json.dumps(value) if isinstance(value, dict) else str(value))
    return table


def _accuse(console: Console, given: Scenario, violation: Violation) -> None:
    console.print(
        f"seed {given.seed}, after {violation.at:.3f} s: {violation.invariant} does not hold:"
        f" {violation.what}",
        style="bold red",
    )
    for note in violation.story:
        console.print(str(note), highlight=False, markup=False)
