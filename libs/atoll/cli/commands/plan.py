"""`atoll plan`."""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Format, Output
from atoll.cli.plain import plain
from atoll.cli.reasons import (
    as_of_line,
    candidate_lines,
    eta_lines,
    holder_lines,
    reason_lines,
    tally_lines,
)
from atoll.cli.render import aligned, print_yaml
from atoll.cli.wanted import Wanted
from atoll.cli.words import devices_text, plural
from atoll.client.scheduling import PlannedJob
from atoll.core.model.plan import TaskPlacement

Command = Annotated[str, Parameter(name="--command", show=False)]
DEFAULT_WANTED = Wanted()


def plan(
    file: Annotated[str | None, Parameter(name="FILE")] = None,
    /,
    *,
    command: Command = "",
    wanted: Wanted = DEFAULT_WANTED,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Tell what would become of jobs if they were submitted now; nothing is submitted.

    `atoll plan FILE`, or `atoll plan --gpus 8 -- python train.py`. Each job is planned by itself:
    where it would run, who would be stopped for it, or what it would wait for. Ends with 6 when one
    of them could never run.

    Args:
        file: A YAML file, one job a document; `-` reads standard input.
        command: The command.
        wanted: What the jobs need.
        output: How to print; `name` prints the cluster of each job, `-` where there is none.
        connection: Where the control plane is.
    """
    specs = wanted.specs(file, command, verb="plan")
    with connection.client() as client:
        found = [client.plan(spec) for spec in specs]
    names = [spec.name or "" for spec in specs]
    _show(found, names, output)
    return exits.NEVER_FITS if any(each.never_fits for each in found) else exits.OK


def lines(found: PlannedJob, now: float) -> Iterator[str]:
    """The plan of one job as a person reads it."""
    yield found.summary
    yield from _tasks(found.tasks)
    if found.victims:
        yield ""
        yield "Would be stopped:"
        rows = [
            (v.attempt, v.queue, v.cluster, f"priority {v.priority}", f"{v.grace_s:.0f}s grace")
            for v in found.victims
        ]
        yield from (f"  {line}" for line in aligned(rows, (True, False, False, False, False)))
    if not found.fits_now:
        yield from reason_lines(found.reasons)
        yield from tally_lines(found.tallies)
        yield from holder_lines(found.holders, now)
    yield from eta_lines(found.eta, now)
    yield from candidate_lines(found.candidates, now)
    yield ""
    if found.jobs_ahead:
        verb = "is" if found.jobs_ahead == 1 else "are"
        yield f"{plural(found.jobs_ahead, 'job')} {verb} before it."
    yield as_of_line(found.as_of, now)


def _tasks(tasks: Sequence[TaskPlacement]) -> Iterator[str]:
    if tasks:
        yield ""
        rows = [("RANK", "NODE", "DEVICES")]
        rows += [(str(task.rank), task.node_name, _devices(task)) for task in tasks]
        yield from (f"  {line}" for line in aligned(rows, (True, False, False)))


def _devices(task: TaskPlacement) -> str:
    parts = [
        f"{grant.index}:{grant.profile or devices_text(grant.blocks)}" for grant in task.devices
    ]
    return " ".join(parts) or "-"


def _show(found: Sequence[PlannedJob], names: Sequence[str], output: Format) -> None:
    if output in ("table", "wide"):
        now = SystemClock().now()
        blocks = ["\n".join(lines(each, now)) for each in found]
        titled = [f"{name}: {block}" for name, block in zip(names, blocks, strict=True)]
        print("\n\n".join(titled if len(found) > 1 else blocks))
    elif output == "name":
        print("\n".join(each.cluster or "-" for each in found))
    elif output == "yaml":
        print_yaml([plain(each) for each in found] if len(found) > 1 else plain(found[0]))
    elif output == "jsonl":
        print("\n".join(json.dumps(plain(each)) for each in found))
    else:
        told = [plain(each) for each in found]
        print(json.dumps(told if len(told) > 1 else told[0], indent=2))
