"""Verbs about queues, clusters and nodes, for the client on an event loop."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, TypeVar

from atoll.client import admin_calls, scheduling
from atoll.client.aio_transport import AsyncTransport
from atoll.client.calls import Call, Page
from atoll.client.operating import PAGE_SIZE
from atoll.client.scheduling import Priority, QueueShare, Wait
from atoll.client.views import ClusterInfo, Forgotten, NodeInfo, PlacementStatus, QueueInfo

ItemT = TypeVar("ItemT")


class AsyncOperations:
    """What operators do."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create_queue(
        self,
        name: str,
        *,
        description: str = "",
        max_queued_jobs: int = 0,
        device_limit_blocks: int = 0,
        weight: float = 1.0,
        deserved_blocks: Mapping[str, int] | None = None,
        kind_limit_blocks: Mapping[str, int] | None = None,
        preempts: bool = True,
    ) -> QueueInfo:
        """Create a queue; 0 means: no limit of its own. Blocks are by device kind, 100 a device."""
        queue = QueueInfo(
            name,
            description,
            max_queued_jobs,
            device_limit_blocks=device_limit_blocks,
            weight=weight,
            deserved_blocks=deserved_blocks or {},
            kind_limit_blocks=kind_limit_blocks or {},
            preempts=preempts,
        )
        return await self._transport.run(admin_calls.create_queue(queue))

    async def get_queue(self, name: str) -> QueueInfo:
        """One queue with its live jobs by state."""
        return await self._transport.run(admin_calls.get_queue(name))

    def queues(self) -> AsyncIterator[QueueInfo]:
        """All queues, by name."""
        return self._pages(lambda token: admin_calls.list_queues(page_size=PAGE_SIZE, token=token))

    async def update_queue(
        self,
        name: str,
        *,
        description: str | None = None,
        max_queued_jobs: int | None = None,
        device_limit_blocks: int | None = None,
        weight: float | None = None,
        deserved_blocks: Mapping[str, int] | None = None,
        kind_limit_blocks: Mapping[str, int] | None = None,
        preempts: bool | None = None,
        etag: str = "",
    ) -> QueueInfo:
        """Change what is not None; with an etag only if nobody changed it since.

        Of blocks only the kinds that are named change; 0 takes one away.
        """
        changes = admin_calls.changes({
            "description": description,
            "max_queued_jobs": max_queued_jobs,
            "device_limit_blocks": device_limit_blocks,
            "weight": weight,
            "deserved_blocks": deserved_blocks,
            "kind_limit_blocks": kind_limit_blocks,
            "preempts": preempts,
        })
        return await self._transport.run(admin_calls.update_queue(name, changes, etag))

    async def delete_queue(self, name: str, *, etag: str = "") -> None:
        """Delete a queue that holds no live job."""
        await self._transport.run(admin_calls.delete_queue(name, etag))

    async def clusters(self, *, include_retired: bool = False) -> list[ClusterInfo]:
        """Clusters with their sums, by name."""
        return await self._transport.run(admin_calls.clusters(include_retired))

    def nodes(self, cluster: str = "") -> AsyncIterator[NodeInfo]:
        """Nodes of one cluster, or of all."""
        return self._pages(
            lambda token: admin_calls.nodes(cluster, page_size=PAGE_SIZE, token=token)
        )

    async def cordon(self, cluster: str, node: str = "", *, reason: str = "") -> None:
        """Keep new work from a node, or from a whole cluster; what runs goes on."""
        await self._transport.run(admin_calls.cordon(cluster, node, reason))

    async def uncordon(self, cluster: str, node: str = "") -> None:
        """Take a cordon back."""
        await self._transport.run(admin_calls.uncordon(cluster, node))

    async def forget_cluster(self, name: str, *, i_have_fenced_it: bool) -> Forgotten:
        """Give a cluster up for good: its attempts are lost, its name is never used again.

        Only after making sure that nothing of it runs any more.
        """
        return await self._transport.run(admin_calls.forget_cluster(name, i_have_fenced_it))

    async def shares(self, queue: str = "") -> list[QueueShare]:
        """What a queue and those below it hold, deserve and borrow; without a name: all."""
        return await self._transport.run(scheduling.shares(queue))

    async def priority(self, job_id: int) -> Priority:
        """What the order of the queue makes of a job, factor by factor."""
        return await self._transport.run(scheduling.priority(job_id))

    async def waits(self, job_ids: Iterable[int]) -> Mapping[int, Wait]:
        """Why jobs wait, in short, by id; up to 1,000 of them."""
        return await self._transport.run(scheduling.waits(job_ids))

    async def placement_status(self) -> PlacementStatus:
        """Of the placement replica that is asked; `leader_address` names the leader."""
        return await self._transport.run(admin_calls.placement_status())

    async def _pages(self, ask: Callable[[str], Call[Any, Page[ItemT]]]) -> AsyncIterator[ItemT]:
        token = ""
        while True:
            page = await self._transport.run(ask(token))
            for item in page.items:
                yield item
            if not (token := page.next_token):
                return
