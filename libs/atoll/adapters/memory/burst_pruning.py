"""Retention of what was rented, in memory."""

from itertools import islice

from atoll.adapters.memory.burst_rows import InstanceRow
from atoll.adapters.memory.store_rows import MemoryDatabase, Rows
from atoll.core.model.burst import ENDED
from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import ClusterState
from atoll.core.model.lifecycle import TERMINAL_ATTEMPT
from atoll.ports.store.burst import LEDGER_KEPT_S


async def prune_burst(database: MemoryDatabase, now: float, *, before: float, limit: int) -> int:
    """Delete what is older than `before`, at most `limit` rows of each kind; how many."""
    async with database.transaction(now) as rows:
        burst = rows.burst
        old = list(islice((r for r in burst.instances.values() if _over(rows, r, before)), limit))
        for row in old:
            _drop_cluster(rows, row.instance.cluster)
            burst.instances.drop(row.instance.id)
        said = (number for number, each in burst.decisions.items() if each.at < before)
        for number in (gone := list(islice(said, limit))):
            burst.decisions.drop(number)
        asked = (key for key, each in burst.requests.items() if each.at < before)
        for key in (keys := list(islice(asked, limit))):
            burst.requests.drop(key)
        spent = (key for key in dict(burst.ledger.items()) if key[0] < before - LEDGER_KEPT_S)
        for entry in (counted := list(islice(spent, limit))):
            burst.ledger.drop(entry)
    return len(old) + len(gone) + len(keys) + len(counted)


def _over(rows: Rows, row: InstanceRow, before: float) -> bool:
    """Whether it has ended, and nothing of it is needed: placement has forgotten its cluster."""
    instance = row.instance
    if instance.state not in ENDED or instance.ended_at >= before:
        return False
    cluster = rows.clusters.get(instance.cluster)
    live = (a for a in rows.attempts.values() if a.state not in TERMINAL_ATTEMPT)
    forgotten = cluster is None or cluster.state is ClusterState.RETIRED
    return forgotten and not any(a.cluster == instance.cluster for a in live)


def _drop_cluster(rows: Rows, name: ClusterName) -> None:
    rows.clusters.drop(name)
    for number, node in list(rows.nodes.items()):
        if node.cluster == name:
            rows.nodes.drop(number)
            rows.node_ids.drop((name, node.inventory.name))
    for key, _ in [each for each in rows.decisions.items() if each[0][0] == name]:
        rows.decisions.drop(key)
    for place, _ in [each for each in rows.avoidances.items() if each[0][0] == name]:
        rows.avoidances.drop(place)
