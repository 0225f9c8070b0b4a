"""Queues as the API shows them."""

from collections.abc import Mapping

from atoll.api.submission.v1 import submission_pb2
from atoll.core.model.ids import QueueName, Tenant
from atoll.core.model.job import Queue
from atoll.core.model.lifecycle import JobState
from atoll.wire.job import etag


def queue_to_proto(
    queue: Queue, counts: Mapping[JobState, int] | None = None
) -> submission_pb2.Queue:
    """A queue with its live jobs by state."""
    return submission_pb2.Queue(
        name=queue.name,
        description=queue.description,
        max_queued_jobs=queue.max_queued_jobs,
        device_limit_blocks=queue.device_limit,
        job_counts={state.value: count for state, count in (counts or {}).items()},
        created_at=queue.created_at,
        etag=etag(queue.generation),
        weight=queue.weight,
        deserved_blocks=dict(queue.deserved),
        kind_limit_blocks=dict(queue.kind_limits),
        preempts=queue.preempts,
    )


def queue_from_proto(proto: submission_pb2.Queue, tenant: Tenant) -> Queue:
    """What a user sets of a queue; output-only fields are left out."""
    return Queue(
        name=QueueName(proto.name),
        tenant=tenant,
        description=proto.description,
        max_queued_jobs=proto.max_queued_jobs,
        device_limit=proto.device_limit_blocks,
        weight=proto.weight if proto.HasField("weight") else 1.0,
        deserved=_amounts(proto.deserved_blocks),
        kind_limits=_amounts(proto.kind_limit_blocks),
        preempts=proto.preempts if proto.HasField("preempts") else True,
    )


def _amounts(blocks: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """By kind; 0 is the same as none."""
    return tuple(sorted((kind, count) for kind, count in blocks.items() if count))
