"""Clusters and nodes as operators see them, and their cordons."""

from dataclasses import dataclass

from atoll.core.model.errors import ErrorCode, NotFound
from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.inventory import ClusterState, Node
from atoll.core.model.messages import ChangeKind
from atoll.core.model.paging import next_token, page_size, read_token
from atoll.ports.store.common import Allocation, Change
from atoll.ports.store.submission import ClusterTotals, SubmissionTx
from atoll.submission.usecases.transactions import Transactions


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node, and what is allocated on it."""

    node: Node
    allocations: tuple[Allocation, ...]


@dataclass(frozen=True, slots=True)
class NodePage:
    """Nodes by cluster and name, and the token of what follows; empty: nothing does."""

    nodes: tuple[NodeView, ...]
    next_token: str


class Clusters:
    """All clusters: they belong to no tenant."""

    def __init__(self, transactions: Transactions) -> None:
        self._run = transactions.run
        self._store = transactions.store

    async def all(self, *, retired: bool) -> list[ClusterTotals]:
        """Clusters by name with their sums; `retired` ones only when asked for."""
        found = await self._store.cluster_totals()
        return [t for t in found if retired or t.cluster.state is not ClusterState.RETIRED]

    async def nodes(self, cluster: str, *, size: int, token: str) -> NodePage:
        """A page of nodes; raises NotFound for a cluster that there is not, BAD_PAGE_TOKEN."""
        query = ("nodes", cluster)
        after = ("", "")
        if token:
            last_cluster, last_name = read_token(token, query, shape=[str, str])
            after = (str(last_cluster), str(last_name))
        elif cluster:
            await self._require_cluster(ClusterName(cluster))
        limit = page_size(size)
        found = await self._store.nodes(cluster, after=after, limit=limit + 1)
        shown = found[:limit]
        last = [shown[-1].cluster, shown[-1].inventory.name] if len(found) > limit else None
        return NodePage(await self._viewed(shown), next_token(query, last) if last else "")

    async def set_cordon(self, cluster: ClusterName, node: str, *, on: bool, reason: str) -> None:
        """Keep new work away, or let it come again; raises NotFound. `node` empty: all of it."""

        async def change(tx: SubmissionTx) -> None:
            if node:
                number = await tx.set_node_cordon(cluster, node, on=on, reason=reason)
                if number is None:
                    raise _no_such_node(cluster, node)
                await tx.changed([Change(ChangeKind.NODES, (number,))])
            else:
                if not await tx.set_cluster_cordon(cluster, on=on, reason=reason):
                    raise _no_such_cluster(cluster)
                await tx.changed([Change(ChangeKind.CLUSTERS, names=(cluster,))])

        await self._run(change)

    async def _require_cluster(self, name: ClusterName) -> None:
        if all(cluster.name != name for cluster in await self._store.clusters()):
            raise _no_such_cluster(name)

    async def _viewed(self, nodes: list[Node]) -> tuple[NodeView, ...]:
        rows: dict[NodeId, list[Allocation]] = {node.id: [] for node in nodes}
        for row in await self._store.allocations(rows) if rows else ():
            rows[row.node].append(row)
        return tuple(NodeView(node, tuple(rows[node.id])) for node in nodes)


def _no_such_cluster(name: ClusterName) -> NotFound:
    return NotFound(
        f"there is no cluster {name!r}",
        code=ErrorCode.CLUSTER_NOT_FOUND,
        metadata={"cluster": name},
    )


def _no_such_node(cluster: ClusterName, node: str) -> NotFound:
    return NotFound(
        f"cluster {cluster} has no node {node!r}",
        code=ErrorCode.NODE_NOT_FOUND,
        metadata={"cluster": cluster, "node": node},
    )
