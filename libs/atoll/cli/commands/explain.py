"""`atoll explain`."""

import json
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.plain import plain
from atoll.cli.reasons import (
    as_of_line,
    candidate_lines,
    eta_lines,
    hold_lines,
    holder_lines,
    reason_lines,
    tally_lines,
)
from atoll.cli.render import colours, print_yaml
from atoll.cli.words import plural
from atoll.client.views import Explanation


def explain(
    job_id: Annotated[int, Parameter(name="JOB")],
    /,
    *,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Tell why a job waits: every blocker, the strongest first, and what would help.

    Args:
        job_id: Number of the job.
        output: How to print; `name` prints the codes of the reasons.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        found = client.explain(job_id)
    if output == "name":
        for reason in found.reasons:
            print(reason.code)
    elif output in ("json", "jsonl"):
        print(json.dumps(plain(found), indent=2 if output == "json" else None))
    elif output == "yaml":
        print_yaml(plain(found))
    else:
        _show(job_id, found)
    return exits.OK


def lines(found: Explanation, now: float) -> Iterator[str]:
    """The explanation as a person reads it."""
    yield found.summary or "nothing is known of it"
    if found.fits_now:
        yield "It would fit now."
    yield from hold_lines(found.hold, now)
    yield from reason_lines(found.reasons)
    yield from tally_lines(found.tallies)
    yield from holder_lines(found.holders, now)
    yield from eta_lines(found.eta, now)
    yield from candidate_lines(found.candidates, now)
    yield ""
    yield from _footer(found, now)


def _show(job_id: int, found: Explanation) -> None:
    told = "\n".join(lines(found, SystemClock().now()))
    title = f"job {job_id}: {found.state.value}"
    if not colours():
        print(f"{title}\n{told}")
        return
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    Console(highlight=False).print(Panel(Text(told), title=title, title_align="left", expand=False))


def _footer(found: Explanation, now: float) -> Iterator[str]:
    if found.jobs_ahead:
        verb = "is" if found.jobs_ahead == 1 else "are"
        yield f"{plural(found.jobs_ahead, 'job')} {verb} before it."
    yield from (f"Could not be read: {what}" for what in found.unread)
    yield as_of_line(found.as_of, now)
