"""`atoll burst policy`: who may rent what, for how much."""

import sys
from typing import Annotated

from cyclopts import App, Parameter

from atoll.cli import exits
from atoll.cli.booking_keys import print_plain
from atoll.cli.burst_limits import NO_LIMITS, Limits
from atoll.cli.burst_text import POLICIES, policy_text, whose
from atoll.cli.failures import WrongUse
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.render import show
from atoll.client.burst_views import PolicyInfo

app = App(name="policy", help="Show and set who may rent what, where, and for how much.")
Queue = Annotated[str, Parameter(name="QUEUE")]
All = Annotated[bool, Parameter(name="--all", negative=())]
Yes = Annotated[bool, Parameter(name=("--yes", "-y"), negative=())]
KILL = "all that is rented will be drained, and nothing will be rented any more"
NO_KILL = "renting will begin again, within the policies"


@app.command(name="show")
def show_(
    queue: Queue = "",
    /,
    *,
    all_: All = False,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show all policies, or the one of a queue.

    Args:
        queue: Only the policy of this queue.
        all_: Only the policy of all queues together.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        if not queue and not all_:
            show(client.burst.policies(), POLICIES, output)
            return exits.OK
        found = client.burst.policy(queue)
    if output in ("json", "yaml"):
        print_plain(found, output)
    else:
        show([found], POLICIES, output)
    return exits.OK


@app.command(name="set")
def set_(
    queue: Queue = "",
    /,
    *,
    all_: All = False,
    limits: Limits = NO_LIMITS,
    yes: Yes = False,
    etag: int = 0,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Change a policy; what is not given stays.

    `atoll burst policy set nlp --allow --per-hour 20 --per-month 3000 --region eu-1 --market spot`
    lets a queue rent; `atoll burst policy set --all --kill` ends all renting.

    Args:
        queue: Queue whose policy it is; it holds for those below it that have none of their own.
        all_: The policy of all queues together.
        limits: What changes.
        yes: Do not ask.
        etag: Only if nobody has changed it since `atoll burst policy show -o wide` showed this.
        connection: Where the control plane is.
    """
    if bool(queue) == all_:
        raise WrongUse("say whose policy it is: a queue, or --all")
    if limits.kill is not None and queue:
        raise WrongUse("--kill is for all queues: --all")
    policy, fields = limits.changed(PolicyInfo(queue, etag=etag))
    if not fields:
        raise WrongUse("say what to change, such as --allow or --per-hour 20")
    if limits.kill is not None:
        confirm(KILL if limits.kill else NO_KILL, yes=yes)
    with connection.client() as client:
        made = client.burst.set_policy(policy, fields)
    may = "switched off" if made.killed else "may rent" if made.allowed else "may not rent"
    print(f"{whose(made.queue)}: {may}; {'; '.join(policy_text(made))}")
    return exits.OK


def confirm(told: str, *, yes: bool) -> None:
    """Go on only if it is meant; raises WrongUse otherwise."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise WrongUse(f"{told}: add --yes if that is meant")
    print(f"{told}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise WrongUse("nothing was changed")
