"""`atoll clusters`."""

from typing import Annotated, Final

from cyclopts import App, Parameter

from atoll.adapters.system import SystemClock
from atoll.cli import exits
from atoll.cli.failures import WrongUse
from atoll.cli.options import DEFAULT_CONNECTION, Connection, Output
from atoll.cli.render import Column, Listing, show
from atoll.cli.words import ago, bytes_text, cpus_text, devices_text, plural
from atoll.client.views import ClusterInfo

app = App(name="clusters", help="List clusters, or give one up for good.")
STATE_COLOURS: Final = {"ACTIVE": "green", "BOOTING": "yellow"}
"""Others are red."""


@app.default
@app.command
def ls(
    *,
    all_: Annotated[bool, Parameter(name=("--all", "-a"), negative=())] = False,
    output: Output = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """List clusters with what is free in them.

    Args:
        all_: Those that were given up, too.
        output: How to print.
        connection: Where the control plane is.
    """
    with connection.client() as client:
        show(client.clusters(include_retired=all_), _listing(SystemClock().now()), output)
    return exits.OK


@app.command
def forget(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    i_have_fenced_it: Annotated[bool, Parameter(negative=())] = False,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Give a cluster up for good, after making sure that nothing of it runs any more.

    Its attempts are declared lost, its decisions void; its name is never used again. What still
    runs there would run a second time elsewhere.

    Args:
        name: Name of the cluster.
        i_have_fenced_it: Nothing of it runs any more: you have made sure.
        connection: Where the control plane is.
    """
    if not i_have_fenced_it:
        raise WrongUse(
            f"make sure that nothing runs on {name} any more, then say so: --i-have-fenced-it"
        )
    with connection.client() as client:
        lost = client.forget_cluster(name, i_have_fenced_it=True)
    print(
        f"{name} is forgotten: {plural(lost.attempts_lost, 'attempt')} lost, "
        f"{plural(lost.decisions_voided, 'decision')} void"
    )
    return exits.OK


def _listing(now: float) -> Listing[ClusterInfo]:
    return Listing(
        columns=(
            Column("CLUSTER", lambda c: c.name),
            Column("BACKEND", lambda c: c.backend),
            Column("STATE", _state, style=lambda c: STATE_COLOURS.get(_state(c), "red")),
            Column("NODES", lambda c: f"{c.nodes_up}/{c.nodes}", right=True),
            Column("FREE CPU", _cpus, right=True),
            Column("FREE MEMORY", _memory, right=True),
            Column("FREE DEVICES", _devices),
            Column("RUNS", lambda c: str(c.live_attempts), right=True),
            Column("SEEN", lambda c: ago(c.last_seen, now), right=True),
            Column("DECISIONS", lambda c: f"{c.acked_seq}/{c.sent_seq}/{c.head_seq}", wide=True),
            Column("GUARD", lambda c: "yes" if c.can_guard else "no", wide=True),
            Column("WHY", lambda c: c.cordon_reason or "-", wide=True),
        ),
        name=lambda c: c.name,
        empty="no clusters; an agent makes one known when it connects",
    )


def _state(cluster: ClusterInfo) -> str:
    return f"{cluster.state},CORDONED" if cluster.cordoned else cluster.state


def _cpus(cluster: ClusterInfo) -> str:
    return f"{cpus_text(cluster.free_cpu_milli)}/{cpus_text(cluster.cpu_milli)}"


def _memory(cluster: ClusterInfo) -> str:
    return f"{bytes_text(cluster.free_memory_bytes)}/{bytes_text(cluster.memory_bytes)}"


def _devices(cluster: ClusterInfo) -> str:
    parts = [
        f"{kind}:{devices_text(cluster.free_blocks.get(kind, 0))}/{count}"
        for kind, count in sorted(cluster.devices.items())
    ]
    return " ".join(parts) or "-"
