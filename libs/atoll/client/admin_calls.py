"""The verbs about queues, clusters, nodes and the placement service itself."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from atoll.api.placement.v1 import placement_pb2 as placement
from atoll.api.submission.v1 import submission_pb2 as submission
from atoll.client import reading
from atoll.client.calls import PLACEMENT, SUBMISSION, Call, Page, page_request
from atoll.client.views import ClusterInfo, Forgotten, NodeInfo, PlacementStatus, QueueInfo

QUEUE_FIELDS: Final = (
    "description", "max_queued_jobs", "device_limit_blocks", "weight", "deserved_blocks",
    "kind_limit_blocks", "preempts",
)  # fmt: skip
QueueValue: TypeAlias = str | float | bool | Mapping[str, int]


def placement_status() -> Call[placement.GetStatusResponse, PlacementStatus]:
    """What the replica that answers is and has done."""
    return Call(
        PLACEMENT,
        "GetStatus",
        placement.GetStatusRequest(),
        placement.GetStatusResponse,
        reading.placement_status,
    )


def forget_cluster(name: str, fenced: bool) -> Call[placement.ForgetClusterResponse, Forgotten]:
    """Give a cluster up for good."""
    return Call(
        PLACEMENT,
        "ForgetCluster",
        placement.ForgetClusterRequest(name=name, i_have_fenced_it=fenced),
        placement.ForgetClusterResponse,
        reading.forgotten,
        repeatable=False,
    )


def create_queue(queue: QueueInfo) -> Call[submission.CreateQueueResponse, QueueInfo]:
    """The queue as created."""
    return Call(
        SUBMISSION,
        "CreateQueue",
        submission.CreateQueueRequest(queue=_queue(queue)),
        submission.CreateQueueResponse,
        lambda reply: reading.queue_info(reply.queue, reply.notes),
        repeatable=False,
    )


def get_queue(name: str) -> Call[submission.GetQueueResponse, QueueInfo]:
    """One queue."""
    return Call(
        SUBMISSION,
        "GetQueue",
        submission.GetQueueRequest(name=name),
        submission.GetQueueResponse,
        lambda reply: reading.queue_info(reply.queue),
    )


def list_queues(
    *, page_size: int, token: str = ""
) -> Call[submission.ListQueuesResponse, Page[QueueInfo]]:
    """A page of queues, by name."""
    request = submission.ListQueuesRequest(page=page_request(page_size, token))
    return Call(SUBMISSION, "ListQueues", request, submission.ListQueuesResponse, _queue_page)


def update_queue(
    name: str, changes: Mapping[str, QueueValue], etag: str
) -> Call[submission.UpdateQueueResponse, QueueInfo]:
    """The queue after it; `changes` has keys of QUEUE_FIELDS.

    Of a mapping only the kinds that it names change; 0 takes one away.
    """
    mask: list[str] = []
    for key, value in changes.items():
        mask += [f"{key}.{kind}" for kind in value] if isinstance(value, Mapping) else [key]
    queue = submission.Queue(name=name, etag=etag, **changes)  # type: ignore[arg-type]
    return Call(
        SUBMISSION,
        "UpdateQueue",
        submission.UpdateQueueRequest(queue=queue, update_mask=sorted(mask)),
        submission.UpdateQueueResponse,
        lambda reply: reading.queue_info(reply.queue, reply.notes),
        repeatable=False,
    )


def delete_queue(name: str, etag: str) -> Call[submission.DeleteQueueResponse, None]:
    """Delete a queue that holds no live job."""
    return Call(
        SUBMISSION,
        "DeleteQueue",
        submission.DeleteQueueRequest(name=name, etag=etag),
        submission.DeleteQueueResponse,
        lambda _: None,
        repeatable=False,
    )


def clusters(include_retired: bool) -> Call[submission.ListClustersResponse, list[ClusterInfo]]:
    """All clusters, by name."""
    return Call(
        SUBMISSION,
        "ListClusters",
        submission.ListClustersRequest(include_retired=include_retired),
        submission.ListClustersResponse,
        lambda reply: [reading.cluster_info(cluster) for cluster in reply.clusters],
    )


def nodes(
    cluster: str, *, page_size: int, token: str = ""
) -> Call[submission.ListNodesResponse, Page[NodeInfo]]:
    """A page of nodes, by cluster and name."""
    request = submission.ListNodesRequest(page=page_request(page_size, token), cluster=cluster)
    return Call(SUBMISSION, "ListNodes", request, submission.ListNodesResponse, _node_page)


def cordon(cluster: str, node: str, reason: str) -> Call[submission.CordonResponse, None]:
    """Keep new work away; twice is once."""
    return Call(
        SUBMISSION,
        "Cordon",
        submission.CordonRequest(cluster=cluster, node=node, reason=reason),
        submission.CordonResponse,
        lambda _: None,
    )


def uncordon(cluster: str, node: str) -> Call[submission.UncordonResponse, None]:
    """Let new work come again; twice is once."""
    return Call(
        SUBMISSION,
        "Uncordon",
        submission.UncordonRequest(cluster=cluster, node=node),
        submission.UncordonResponse,
        lambda _: None,
    )


def _queue_page(reply: submission.ListQueuesResponse) -> Page[QueueInfo]:
    return Page([reading.queue_info(queue) for queue in reply.queues], reply.next_page_token)


def _node_page(reply: submission.ListNodesResponse) -> Page[NodeInfo]:
    return Page([reading.node_info(node) for node in reply.nodes], reply.next_page_token)


def _queue(queue: QueueInfo) -> submission.Queue:
    values = {key: getattr(queue, key) for key in QUEUE_FIELDS}
    return submission.Queue(name=queue.name, **values)


def changes(given: Mapping[str, QueueValue | None]) -> dict[str, QueueValue]:
    """Those that are given, by field."""
    return {key: value for key, value in given.items() if value is not None}
