"""Decisions, on the agent's stream and as the bytes that Redis and rows keep."""

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.ids import AttemptId, ClusterName, Epoch, JobId
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.messages import Decision, DecisionKind
from atoll.core.model.spec import JobSpec
from atoll.wire.enums import WireError, inverse, known, to_numbers
from atoll.wire.placement import task_to_proto, tasks_from_proto
from atoll.wire.spec import spec_from_proto, spec_to_proto

_KINDS = to_numbers(DecisionKind, agent_pb2.DecisionKind, prefix="DECISION_KIND_")
_KINDS_BACK = inverse(_KINDS)


@dataclass(frozen=True, slots=True)
class StartOrder:
    """What a START or RESIZE tells an agent beside its placement."""

    spec: JobSpec
    """With secrets."""
    addresses: Mapping[str, str]
    """Where gang members are reached, by node name."""


def decision_to_proto(decision: Decision) -> agent_pb2.Decision:
    """The decision itself, without a START's spec; the cluster is the stream's own."""
    return agent_pb2.Decision(
        number=decision.number,
        epoch_generation=decision.epoch.generation,
        epoch_revision=decision.epoch.revision,
        kind=_KINDS[decision.kind],
        attempt_id=decision.attempt,
        tasks=[task_to_proto(task) for task in decision.tasks],
        cause="" if decision.cause is StopCause.NONE else decision.cause.value,
        bind_by=decision.bind_by,
        trace=decision.trace,
        generation=decision.generation,
    )


def decision_from_proto(proto: agent_pb2.Decision, cluster: ClusterName) -> Decision:
    """The decision; raises WireError for a kind or cause that this version does not know."""
    return Decision(
        cluster=cluster,
        number=proto.number,
        epoch=Epoch(proto.epoch_generation, proto.epoch_revision),
        kind=known(_KINDS_BACK, proto.kind, what="decision kind"),
        attempt=AttemptId(proto.attempt_id),
        tasks=tasks_from_proto(proto.tasks),
        cause=_cause(proto.cause),
        bind_by=proto.bind_by,
        trace=proto.trace,
        generation=proto.generation,
    )


def start_to_proto(decision: Decision, order: StartOrder) -> agent_pb2.Decision:
    """A START or RESIZE with what the agent needs to run it."""
    proto = decision_to_proto(decision)
    proto.spec.CopyFrom(spec_to_proto(order.spec, secrets=True))
    proto.array_index = order.spec.array_index
    proto.array_id = order.spec.array_id or 0
    proto.addresses.update(order.addresses)
    return proto


def start_from_proto(proto: agent_pb2.Decision) -> StartOrder:
    """What a START or RESIZE brings beside its placement."""
    array = (JobId(proto.array_id), proto.array_index) if proto.array_id else None
    return StartOrder(spec_from_proto(proto.spec, array=array), dict(proto.addresses))


def encode_decision(decision: Decision) -> bytes:
    """The bytes that Redis and rows keep."""
    return decision_to_proto(decision).SerializeToString()


def decode_decision(data: bytes, cluster: ClusterName) -> Decision:
    """The decision that `encode_decision` wrote; raises WireError."""
    try:
        return decision_from_proto(agent_pb2.Decision.FromString(data), cluster)
    except DecodeError as error:
        raise WireError(f"decision: {error}") from error


def _cause(text: str) -> StopCause:
    if not text:
        return StopCause.NONE
    if text not in StopCause.__members__:
        raise WireError(f"stop cause: unknown value {text!r}")
    return StopCause(text)
