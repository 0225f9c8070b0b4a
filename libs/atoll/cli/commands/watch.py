"""`atoll watch`."""

import json
import shlex
import sys
from datetime import datetime
from typing import Annotated, Literal

from cyclopts import Parameter

from atoll.cli import exits
from atoll.cli.options import DEFAULT_CONNECTION, Connection
from atoll.cli.plain import plain
from atoll.client.views import Event


def watch(
    *job_ids: Annotated[int, Parameter(name="JOB")],
    queue: Annotated[str, Parameter(name=("--queue", "-q"))] = "",
    cursor: str = "",
    output: Annotated[Literal["table", "jsonl"], Parameter(name=("--output", "-o"))] = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show what happens to jobs, as it happens, until Ctrl-C.

    Args:
        job_ids: Numbers of jobs; all when none is given.
        queue: Only of this queue and those below it.
        cursor: Go on after this one, which `-o jsonl` shows with every event.
        output: How to print.
        connection: Where the control plane is.
    """
    last = cursor
    try:
        with connection.client() as client:
            for event in client.watch(cursor, queue=queue, job_ids=job_ids):
                line = json.dumps(plain(event)) if output == "jsonl" else _line(event)
                # Before anybody sees the line: who ends us because of it goes on behind it.
                last = event.cursor
                print(line, flush=True)
    except KeyboardInterrupt:
        again = [*map(str, job_ids), *(["--queue", queue] if queue else [])]
        again += ["--cursor", last] if last else []
        print(f"\ngo on from here: {shlex.join(['atoll', 'watch', *again])}", file=sys.stderr)
    return exits.OK


def _line(event: Event) -> str:
    clock = datetime.fromtimestamp(event.at).astimezone().strftime("%H:%M:%S")
    where = f" on {event.cluster}" if event.cluster else ""
    told = ": ".join(part for part in (event.reason, event.message) if part)
    return f"{clock}  {event.job_id:>6}  {event.event:<12} {event.state.value:<10}{where}" + (
        f"  {told}" if told else ""
    )
