"""`atoll burst spend`."""

import shutil
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.booking_keys import print_plain
from atoll.cli.moments import length
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.render import print_lines
from atoll.cli.spend_chart import STYLES, chart
from atoll.cli.spend_picture import draw_spend


def spend(
    *,
    queue: Annotated[str, Parameter(name=("--queue", "-q"))] = "",
    past: str = "24h",
    step: str = "1h",
    png: Path | None = None,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show what renting costs, against what it may cost.

    `atoll burst spend --past 7d --step 1d`, `atoll burst spend --queue nlp --png spend.png`.

    Args:
        queue: Only of this queue; of all together if not given.
        past: How far into the past.
        step: Length of what a bar stands for.
        png: Write a picture there instead.
        output: How to print.
        connection: Where the control plane is.
    """
    step_s = length(step, "step")
    with connection.client() as client:
        found = client.burst.spend(
            queue,
            from_at=_first(SystemClock().now(), length(past, "past"), step_s),
            step_s=step_s,
        )
    if png is not None:
        draw_spend(found, png)
        print(f"{png} written")
    elif output in ("table", "wide", "name"):
        print_lines(chart(found, columns=shutil.get_terminal_size().columns), STYLES)
    else:
        print_plain(found, output)
    return exits.OK


def _first(now: float, past_s: float, step_s: float) -> float:
    """Steps begin where people expect it, such as full hours; the last is the present one."""
    return (now // step_s + 1) * step_s - max(step_s, past_s)
