"""From the messages of the API to the values that callers see."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

from google.protobuf.message import Message

from atoll.api.common.v1 import common_pb2
from atoll.api.events.v1 import events_pb2
from atoll.api.placement.v1 import placement_pb2
from atoll.api.submission.v1 import submission_pb2
from atoll.client.candidates import candidate_of
from atoll.client.views import (
    ClusterInfo,
    DeadlineTold,
    DeviceUse,
    Eta,
    Event,
    Explanation,
    Forgotten,
    Hold,
    Holder,
    JobInfo,
    LogChunk,
    NodeInfo,
    PlacementStatus,
    QueueInfo,
    Reason,
    Tally,
)
from atoll.core.model.deadline import Chance
from atoll.core.model.lifecycle import JobState
from atoll.core.model.reason import ReasonCode
from atoll.wire.inventory import node_from_proto
from atoll.wire.job import state_from_proto
from atoll.wire.placement import tasks_from_proto

ViewT = TypeVar("ViewT")


def job_info(proto: submission_pb2.Job) -> JobInfo:
    """A job."""
    return read(
        JobInfo,
        proto,
        name=proto.spec.name,
        queue=proto.spec.queue,
        state=state_from_proto(proto.state),
        priority_class=proto.spec.priority_class,
        labels=dict(proto.spec.labels),
        tasks=tasks_from_proto(proto.tasks),
        exit_code=proto.exit_code if proto.HasField("exit_code") else None,
        told=None,
        proto=proto.spec,
    )


def written(reply: submission_pb2.SubmitJobsResponse) -> list[tuple[int, DeadlineTold | None]]:
    """The jobs of a submit, and what those with a deadline are told."""
    told = [_told(answer) for answer in reply.deadlines] or [None] * len(reply.job_ids)
    return list(zip(reply.job_ids, told, strict=True))


def submitted(job_id: int, spec: common_pb2.JobSpec, told: DeadlineTold | None = None) -> JobInfo:
    """What is known of a job right after its submit."""
    return JobInfo(
        id=job_id,
        name=spec.name,
        queue=spec.queue,
        state=JobState.QUEUED,
        priority_class=spec.priority_class,
        labels=dict(spec.labels),
        guaranteed=told is not None and told.chance == Chance.GUARANTEED,
        told=told,
        proto=spec,
    )


def event_of(proto: events_pb2.JobEvent, cursor: str) -> Event:
    """An event, and the cursor to go on from after it."""
    return read(Event, proto, state=state_from_proto(proto.state), cursor=cursor)


def log_chunk(proto: submission_pb2.StreamLogsResponse) -> LogChunk:
    """A piece of output."""
    return read(LogChunk, proto)


def explanation(proto: placement_pb2.ExplainJobResponse) -> Explanation:
    """Why a job waits."""
    return read(
        Explanation,
        proto,
        state=state_from_proto(proto.state),
        reasons=tuple(reason_of(reason) for reason in proto.reasons),
        tallies=tuple(tally_of(tally) for tally in proto.tallies),
        unread=tuple(proto.unread),
        holders=tuple(read(Holder, holder) for holder in proto.holders),
        eta=read(Eta, proto.eta) if proto.HasField("eta") else None,
        hold=_hold(proto.hold) if proto.HasField("hold") else None,
        candidates=tuple(candidate_of(each) for each in proto.candidates),
    )


def queue_info(proto: submission_pb2.Queue, notes: Iterable[str] = ()) -> QueueInfo:
    """A queue."""
    return read(
        QueueInfo,
        proto,
        weight=proto.weight if proto.HasField("weight") else 1.0,
        deserved_blocks=dict(proto.deserved_blocks),
        kind_limit_blocks=dict(proto.kind_limit_blocks),
        preempts=proto.preempts if proto.HasField("preempts") else True,
        job_counts=dict(proto.job_counts),
        notes=tuple(notes),
    )


def cluster_info(proto: submission_pb2.Cluster) -> ClusterInfo:
    """A cluster."""
    return read(
        ClusterInfo, proto, devices=dict(proto.devices), free_blocks=dict(proto.free_blocks)
    )


def node_info(proto: submission_pb2.Node) -> NodeInfo:
    """A node."""
    return read(
        NodeInfo,
        proto,
        inventory=node_from_proto(proto.inventory),
        device_use=tuple(read(DeviceUse, use) for use in proto.device_use),
    )


def placement_status(proto: placement_pb2.GetStatusResponse) -> PlacementStatus:
    """A placement replica."""
    return read(
        PlacementStatus,
        proto,
        placement_ms=tuple(proto.placement_ms),
        eta_within=tuple(proto.eta_within),
    )


def forgotten(proto: placement_pb2.ForgetClusterResponse) -> Forgotten:
    """What was given up with a cluster."""
    return read(Forgotten, proto)


def _told(proto: common_pb2.DeadlineAnswer) -> DeadlineTold | None:
    if proto.chance == common_pb2.DEADLINE_CHANCE_UNSPECIFIED:
        return None
    name = common_pb2.DeadlineChance.Name(proto.chance)
    return read(DeadlineTold, proto, chance=name.removeprefix("DEADLINE_CHANCE_").lower())


def reason_of(proto: common_pb2.Reason) -> Reason:
    """A coded reason."""
    known = proto.code in ReasonCode.__members__
    return read(Reason, proto, code=ReasonCode(proto.code) if known else proto.code)


def tally_of(proto: placement_pb2.ClusterTally) -> Tally:
    """Nodes of a cluster by reason."""
    return Tally(proto.cluster, proto.nodes, dict(proto.counts))


def read(kind: type[ViewT], message: Message, /, **special: Any) -> ViewT:
    """A view of a message; `special` are the fields that are not named alike on both sides."""
    # Fields that are named alike on both sides are taken over; the others come as arguments.
    names = [item.name for item in fields(kind) if item.name not in special]  # type: ignore[arg-type]
    return kind(**{name: getattr(message, name) for name in names}, **special)


def _hold(proto: placement_pb2.Hold) -> Hold:
    return read(Hold, proto, victims=tuple(proto.victims), tasks=tasks_from_proto(proto.tasks))
