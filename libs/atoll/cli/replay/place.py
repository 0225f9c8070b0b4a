"""Finds the cluster that has the nodes of a list."""

from collections.abc import Sequence

from atoll.cli.failures import WrongUse
from atoll.cli.replay.openb import TraceNode
from atoll.client.sync import Client


def cluster_of(client: Client, machines: Sequence[TraceNode], wanted: str) -> str:
    """Its name; WrongUse when it does not have the nodes, and how to make one that has."""
    names = {machine.name for machine in machines}
    there: dict[str, set[str]] = {}
    for node in client.nodes(wanted):
        there.setdefault(node.cluster, set()).add(node.inventory.name)
    if found := next((name for name in sorted(there) if names <= there[name]), None):
        return found
    nearest = max(sorted(there), key=lambda name: len(names & there[name]), default="")
    missing = len(names - there.get(nearest, set()))
    told = f"{nearest} lacks {missing} of them" if nearest else "there are no nodes at all"
    raise WrongUse(
        f"no cluster has the {len(names)} nodes of the list: {told}. Start one with this file "
        "and `atoll up --clusters FILE`:\n"
        "clusters: [{name: openb, backend: simulated, cluster: NODE_LIST}]"
    )
