"""`atoll burst request` and `release`."""

from typing import Annotated

from cyclopts import Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.burst_text import instances
from atoll.cli.commands.burst_policy import confirm
from atoll.cli.failures import WrongUse
from atoll.cli.moments import length
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.render import show


def request(
    offer: Annotated[str, Parameter(name="OFFER")] = "",
    /,
    *,
    kind: str = "",
    count: Annotated[int, Parameter(name=("--count", "-n"))] = 1,
    queue: Annotated[str, Parameter(name=("--queue", "-q"))] = "",
    keep: str = "",
    why: str = "",
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Rent by hand, within the same limits.

    `atoll burst request ec2/eu-1a/g5.12xlarge/spot`: one instance of an offer;
    `atoll burst request --kind H100 --count 8 --queue nlp --keep 2h`: eight devices, the cheapest.

    Args:
        offer: Key of an offer, as `atoll burst offers` lists them.
        kind: Without an offer: the cheapest that is allowed with this kind of accelerator.
        count: Instances of the offer, or devices of the kind.
        queue: Whose budget pays, and whose jobs may run there; everybody's if not given.
        keep: Keep it for so long, although nothing runs there.
        why: For people.
        output: How to print.
        connection: Where the control plane is.
    """
    if bool(offer) == bool(kind):
        raise WrongUse("say what: an OFFER of `atoll burst offers`, or --kind H100")
    keep_s = length(keep, "keep") if keep else 0.0
    with connection.client() as client:
        made = client.burst.request(
            offer, kind=kind, count=count, queue=queue, keep_s=keep_s, why=why
        )
    show(made, instances(SystemClock().now()), output)
    return exits.OK


def release(
    ids: Annotated[list[int] | None, Parameter(name="INSTANCE", negative=())] = None,
    /,
    *,
    all_: Annotated[bool, Parameter(name=("--all", "-a"), negative=())] = False,
    now: Annotated[bool, Parameter(negative=())] = False,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), negative=())] = False,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Give instances back: no new work begins there, and they end once nothing runs there.

    `atoll burst release 7 8`, `atoll burst release --all --now`.

    Args:
        ids: Numbers of instances.
        all_: All of them.
        now: Stop what runs there, with its checkpoint signal and its grace; it queues again.
        yes: With --all: do not ask.
        output: How to print.
        connection: Where the control plane is.
    """
    if bool(ids) == all_:
        raise WrongUse("say which: numbers of instances, or --all")
    if all_:
        confirm("all that is rented will be given back", yes=yes)
    with connection.client() as client:
        gone = client.burst.release(ids or (), all=all_, now=now)
    show(gone, instances(SystemClock().now()), output)
    return exits.OK
