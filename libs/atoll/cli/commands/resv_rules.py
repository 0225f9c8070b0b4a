"""`atoll resv rules`: standing rules that book by themselves."""

from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from atoll.cli import exits
from atoll.cli.booking_text import kind_text
from atoll.cli.moments import minute
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.render import Column, Listing, show
from atoll.client.rules_file import read_rules
from atoll.core.model.standing_rule import Rule, RuleAction

app = App(name="rules", help="Rules that book by themselves: large jobs, maintenance, hours.")


@app.command
def ls(*, output: Output = "table", connection: Connection = DEFAULT_CONNECTION) -> int:
    """List the rules, and where each one is.

    Args:
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        show(client.reservations.rules(), RULES, output)
    return exits.OK


@app.command
def put(
    file: Annotated[Path, Parameter(name="FILE")],
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Create or replace the rules of a YAML file.

    Args:
        file: One rule, or several documents; docs/reservations.md shows each kind.
        connection: Where the control plane is.
    """
    rules = read_rules(file)
    with connection.client() as client:
        for rule in rules:
            made = client.reservations.put_rule(rule)
            print(f"rule {made.name} {'set' if made.enabled else 'set, and switched off'}")
    return exits.OK


@app.command
def delete(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Delete a rule; what it booked and has not begun is cancelled.

    Args:
        name: Name of the rule.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        cancelled = client.reservations.delete_rule(name)
    print(f"rule {name} deleted, {cancelled} of its bookings cancelled")
    return exits.OK


@app.command
def log(
    name: Annotated[str, Parameter(name="NAME")] = "",
    /,
    *,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show what rules did and why, the latest first.

    Args:
        name: Only this rule.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        show(client.reservations.rule_actions(name), ACTIONS, output)
    return exits.OK


RULES: Final[Listing[Rule]] = Listing(
    columns=(
        Column("RULE", lambda rule: rule.name),
        Column("ON", lambda rule: "yes" if rule.enabled else "no"),
        Column("DOES", lambda rule: kind_text(rule.kind)),
        Column("STATUS", lambda rule: rule.status or "-"),
        Column("ETAG", lambda rule: str(rule.etag), wide=True),
    ),
    name=lambda rule: rule.name,
    empty="no rules",
)
ACTIONS: Final[Listing[RuleAction]] = Listing(
    columns=(
        Column("AT", lambda action: minute(action.at)),
        Column("RULE", lambda action: action.rule),
        Column("DID", lambda action: action.what),
        Column("BECAUSE", lambda action: action.why),
        Column("RESERVATION", lambda a: str(a.reservation or "-"), wide=True, right=True),
    ),
    name=lambda action: action.rule,
    empty="no rule has done anything yet",
)
