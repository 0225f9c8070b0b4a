"""`atoll sim spot`."""

import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from atoll.core.engine.burst.priors import PRIORS, Prior, prior_for
from atoll.core.engine.burst.rules import RULES
from atoll.core.engine.burst.spot import Mode, SpotRule, Terms
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.sim.readers.spot import SpotWindow, by_window, read_windows
from atoll.sim.spot import Played, bound_ratio, cost_ratio, play

OURS: Final = "atoll"
PEER: Final = "uniform_progress"
MOST: Final = 1e5
Groups = Sequence[tuple[SpotWindow, ...]]
Tick = Callable[[], None]


def spot(
    *,
    windows: Path,
    deadline_h: float,
    aligned: Path | None = None,
    policy: str | None = None,
    prior: str | None = None,
    out: Path | None = None,
    aligned_out: Path | None = None,
    work_h: float = 48.0,
    overhead_h: float = 0.2,
    on_demand: float = 3.06,
    spot_price: float = 0.9731,
) -> int:
    """Run a job with a deadline over windows of spot availability, on spot or on demand.

    The last line of the output is one JSON object. `cost_ratio` is the mean cost over that of
    the work on demand without overheads; a tick that is begun is paid. Nothing is known of the
    ticks that are to come. Without `--policy` all are run, beside the least cost for one who
    knows the future (`bound`), and the head is that of `atoll`.

    Args:
        windows: Windows of single zones, one JSON object per line, may be gzipped.
        deadline_h: Hours in which the work has to be done.
        aligned: Windows of several zones at the same times: the job may move between zones.
        policy: Run this one only: atoll, uniform_progress, greedy.
        prior: What is known of spot beforehand: east, west; left out: what was not fitted on
            any zone of the file.
        out: Write `zone,window,tick,mode` (none, spot, od) for each tick until the job is done.
        aligned_out: The same for the aligned windows; the zone is that of the spot instance.
        work_h: Hours of work.
        overhead_h: Hours in which nothing is done after each start and each move.
        on_demand: Dollars per hour.
        spot_price: Dollars per hour.
    """
    _check_names(policy=policy, prior=prior)
    _check_above_0(deadline_h=deadline_h, work_h=work_h)
    _check_above_0(on_demand=on_demand, spot_price=spot_price)
    _check_overhead(overhead_h)
    terms = Terms(work_h * 3600, deadline_h * 3600, overhead_h * 3600, 1.0, on_demand, spot_price)
    single = [(window,) for window in read_windows(windows)]
    zones = by_window(read_windows(aligned)) if aligned else []
    names = [policy] if policy else list(RULES)
    head = policy or OURS
    console = Console(stderr=True)
    with Progress(console=console, transient=True) as progress:
        lone = [(window,) for group in zones for window in group]
        total = len(names) * (len(single) + len(zones)) + len(lone)
        task = progress.add_task(f"{deadline_h:g} h", total=total)

        def tick() -> None:
            progress.advance(task)

        played = _play_all(names, single, _fitted(terms, single, prior), tick=tick)
        moved = _play_all(names, zones, _fitted(terms, zones, prior), tick=tick)
        peer = _play_all([PEER], lone, terms, tick=tick)[PEER]
        report = _report(played, head, terms)
        if policy is None:
            report["bound"] = _bound(single, terms)
    if zones:
        report["aligned"] = _aligned(moved, head, terms, peer=peer)
    console.print(_table(report["per_zone"], report["policies"]))
    _write(out, played[head])
    _write(aligned_out, moved[head])
    first = {"policy": head, "deadline_h": deadline_h}
    sys.stdout.write(json.dumps(first | report) + "\n")
    return 0


def _check_above_0(**numbers: float) -> None:
    for field, number in numbers.items():
        if not 0 < number <= MOST:
            raise InvalidInput((FieldViolation(field, f"give a number above 0, up to {MOST:g}"),))


def _check_overhead(hours: float) -> None:
    if not 0 <= hours <= MOST:
        raise InvalidInput((FieldViolation("overhead_h", "give 0 or more hours"),))


def _check_names(*, policy: str | None, prior: str | None) -> None:
    for field, name, known in (("policy", policy, RULES), ("prior", prior, PRIORS)):
        if name is not None and name not in known:
            raise InvalidInput((FieldViolation(field, f"known are {', '.join(sorted(known))}"),))


def _fitted(terms: Terms, groups: Groups, prior: str | None) -> Terms:
    """The terms with a prior that was fitted on other zones than these, unless one is named."""
    zones = {window.zone for group in groups for window in group}
    chosen: Prior = PRIORS[prior] if prior else prior_for(zones)
    return replace(terms, prior=chosen)


def _play_all(
    names: Sequence[str], groups: Groups, terms: Terms, *, tick: Tick
) -> dict[str, list[Played]]:
    return {
        name: [_play(RULES[name], group, terms, tick=tick) for group in groups] for name in names
    }


def _play(rule: SpotRule, group: tuple[SpotWindow, ...], terms: Terms, *, tick: Tick) -> Played:
    tick()
    return play(rule, group, replace(terms, tick_s=group[0].tick_s))


def _report(played: Mapping[str, Sequence[Played]], head: str, terms: Terms) -> dict[str, Any]:
    by_zone: dict[str, list[Played]] = defaultdict(list)
    for each in played[head]:
        by_zone[each.zones[0]].append(each)
    return {
        **_numbers(played[head], terms),
        "per_zone": {zone: _numbers(each, terms) for zone, each in sorted(by_zone.items())},
        "policies": {name: _numbers(each, terms) for name, each in played.items()},
    }


def _bound(single: Groups, terms: Terms) -> float | None:
    """Nothing if the job cannot be in time."""
    bound = bound_ratio(single, terms)
    return round(bound, 4) if math.isfinite(bound) else None


def _numbers(played: Sequence[Played], terms: Terms) -> dict[str, Any]:
    return {
        "cost_ratio": round(cost_ratio(played, terms), 4),
        "missed": sum(each.missed for each in played),
        "windows": len(played),
    }


def _aligned(
    moved: Mapping[str, Sequence[Played]], head: str, terms: Terms, *, peer: Sequence[Played]
) -> dict[str, Any]:
    """The numbers with several zones, and what is saved against Uniform Progress in each alone."""
    alone = cost_ratio(peer, terms)
    return {
        **_numbers(moved[head], terms),
        "zones": len(moved[head][0].zones),
        "single_zone_uniform_progress": round(alone, 4),
        "saved": round(1 - cost_ratio(moved[head], terms) / alone, 4),
        "policies": {name: _numbers(each, terms) for name, each in moved.items()},
    }


def _table(per_zone: Mapping[str, Any], policies: Mapping[str, Any]) -> Table:
    table = Table("", "cost ratio", "missed", "windows")
    for name, numbers in {**policies, **per_zone}.items():
        table.add_row(name, *(f"{numbers[key]:g}" for key in ("cost_ratio", "missed", "windows")))
    return table


def _write(path: Path | None, played: Sequence[Played]) -> None:
    if path is None:
        return
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("zone", "window", "tick", "mode"))
        for each in played:
            for tick, choice in enumerate(each.choices):
                held = choice.zone if choice.mode is Mode.SPOT else 0
                alone = len(each.zones) == 1 or choice.mode is Mode.SPOT
                zone = each.zones[held] if alone else ""
                rows.writerow((zone, each.window, tick, choice.mode))
