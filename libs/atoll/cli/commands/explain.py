"""`atoll explain`."""

import json
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.plain import plain
from atoll.cli.render import colours, print_yaml
from atoll.cli.words import ago, bytes_text, cpus_text, devices_text, plural
from atoll.client.views import Explanation, Reason, Tally


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
    for n, reason in enumerate(found.reasons, start=1):
        yield ""
        yield f"{n}. {reason.code}{f' on {reason.cluster}' if reason.cluster else ''}"
        yield f"   {reason.message}"
        if numbers := _numbers(reason):
            yield f"   {numbers}"
        if reason.help:
            yield f"   What would help: {reason.help}"
    if found.tallies:
        yield ""
        yield "Nodes:"
        yield from (f"  {_tally(tally)}" for tally in found.tallies)
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


def _numbers(reason: Reason) -> str:
    if not (reason.needed or reason.available):
        return ""
    at = f", on {plural(reason.count, 'node')}" if reason.count else ""
    return f"needs {_amount(reason.needed, reason.unit)}, there {_are(reason)}{at}"


def _are(reason: Reason) -> str:
    verb = "is" if reason.available == 1 else "are"
    return f"{verb} {_amount(reason.available, reason.unit)} at best"


def _amount(number: int, unit: str) -> str:
    match unit:
        case "bytes":
            return bytes_text(number)
        case "milli-CPU":
            return f"{cpus_text(number)} CPU"
        case "blocks":
            return f"{devices_text(number)} devices"
        case _:
            return f"{number:,} {unit}".rstrip()


def _tally(tally: Tally) -> str:
    parts = sorted(tally.counts.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{count:,} {code}" for code, count in parts)
    return f"{tally.cluster} ({tally.nodes:,}): {shown}"


def _footer(found: Explanation, now: float) -> Iterator[str]:
    if found.jobs_ahead:
        verb = "is" if found.jobs_ahead == 1 else "are"
        yield f"{plural(found.jobs_ahead, 'job')} {verb} before it."
    yield from (f"Could not be read: {what}" for what in found.unread)
    age = ago(found.as_of, now)
    yield "As of now." if age == "0s" else f"As of {age} ago."
