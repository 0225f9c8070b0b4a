"""`atoll burst`: rented capacity."""

from collections.abc import Iterator
from typing import Annotated

from cyclopts import App, Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.booking_keys import print_plain
from atoll.cli.burst_text import OFFERS, decision_lines, instances, status_lines
from atoll.cli.commands import burst_change, burst_forecast, burst_policy, burst_spend
from atoll.cli.failures import WrongUse
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.render import show
from atoll.client.burst_views import BurstExplanation

app = App(name="burst", help="See, limit and steer what is rented, and learn why.")
Queue = Annotated[str, Parameter(name=("--queue", "-q"))]


@app.command
def status(*, output: Output = "table", connection: Connection = DEFAULT_CONNECTION) -> int:
    """Show where renting stands: limits, spending, instances, providers, the last decision.

    Args:
        output: How to print; `name` prints the states with their numbers of instances.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        found = client.burst.status()
    if output in ("table", "wide"):
        print("\n".join(status_lines(found, SystemClock().now())))
    elif output == "name":
        print("\n".join(f"{state} {count}" for state, count in sorted(found.instances.items())))
    else:
        print_plain(found, output)
    return exits.OK


app.command(burst_forecast.forecast)


@app.command
def offers(
    *,
    kind: str = "",
    queue: Queue = "",
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """List what can be rented, the cheapest device first.

    `atoll burst offers --kind H100 --queue nlp`: what this queue may rent of this kind.

    Args:
        kind: Only with this kind of accelerator.
        queue: Only what the policy of this queue lets it rent.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        show(client.burst.offers(kind, queue=queue), OFFERS, output)
    return exits.OK


@app.command(name="instances")
def instances_(
    *,
    all_: Annotated[bool, Parameter(name=("--all", "-a"), negative=())] = False,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """List what is rented, the latest first.

    Args:
        all_: Ended ones too.
        output: How to print; `wide` has its cluster, the time that it took to boot, and why.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        show(client.burst.instances(all=all_), instances(SystemClock().now()), output)
    return exits.OK


app.command(burst_spend.spend)
app.command(burst_policy.app)
app.command(burst_change.request)
app.command(burst_change.release)


@app.command
def explain(
    job_id: Annotated[int, Parameter(name="JOB")] = 0,
    /,
    *,
    instance: int = 0,
    last: int = 20,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Tell why something was rented or not: for a job, for an instance, or of late.

    `atoll burst explain 1042`, `atoll burst explain --instance 7`, `atoll burst explain --last 5`.

    Args:
        job_id: Number of the job.
        instance: Number of the instance.
        last: So many decisions at most.
        output: How to print; `name` prints what was done.
        connection: Where the control plane is.
    """
    if job_id and instance:
        raise WrongUse("give either a job or --instance")
    with connection.client() as client:
        found = client.burst.explain(job_id, instance_id=instance, most=last)
    if output in ("table", "wide"):
        print("\n".join(_lines(found)))
    elif output == "name":
        print("\n".join(each.action for each in found.decisions))
    else:
        print_plain(found, output)
    return exits.OK


def _lines(found: BurstExplanation) -> Iterator[str]:
    yield found.summary or "nothing is known of it"
    yield from decision_lines(found.decisions, SystemClock().now())
