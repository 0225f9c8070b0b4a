"""Job specs.

A spec on the wire is what a user writes: it may depend on jobs by name and stand for a whole array.
The model's spec is one job of it, so ids, the place in the array and the number of the priority
come as arguments.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from google.protobuf.message import DecodeError

from atoll.api.common.v1 import common_pb2
from atoll.core.model.ids import JobId
from atoll.core.model.priority import DEFAULT_CLASS
from atoll.core.model.spec import JobSpec, OnLost, TaskGroup
from atoll.wire.enums import WireError, inverse, to_numbers
from atoll.wire.shape import pairs, shape_from_proto, shape_to_proto
from atoll.wire.wishes import (
    anti_affinity_from_proto,
    anti_affinity_to_proto,
    burst_allowed,
    burst_to_proto,
    checkpoint_from_proto,
    checkpoint_to_proto,
    elastic_from_proto,
    elastic_to_proto,
    spread_from_proto,
    spread_to_proto,
    topology_from_proto,
    topology_to_proto,
)

ValueT = TypeVar("ValueT")
GivenField: TypeAlias = Literal["topology", "anti_affinity", "checkpoint", "elastic"]

DEFAULT_QUEUE = "default"
DEFAULT_GRACE_S = 10.0

ON_LOST = to_numbers(OnLost, common_pb2.OnLost, prefix="ON_LOST_")
_ON_LOST_BACK = inverse(ON_LOST)


def spec_to_proto(spec: JobSpec, *, secrets: bool = False) -> common_pb2.JobSpec:
    """The spec; without `secrets` their keys are kept and their values are empty."""
    return common_pb2.JobSpec(
        name=spec.name,
        queue=spec.queue,
        groups=[group_to_proto(group) for group in spec.groups],
        priority_class=spec.priority_class,
        labels=dict(spec.labels),
        secrets={key: text if secrets else "" for key, text in spec.secrets},
        output=spec.output,
        ports=spec.ports,
        time_limit_s=spec.time_limit_s,
        begin_at=spec.begin_at,
        depends_on=[common_pb2.Dependency(id=job) for job in spec.depends_on],
        on_lost=ON_LOST[spec.on_lost],
        retries=spec.retries,
        grace_s=spec.grace_s,
        topology=topology_to_proto(spec.topology),
        checkpoint=checkpoint_to_proto(spec.checkpoint),
        deadline_at=spec.deadline_at,
        best_effort=spec.best_effort,
        elastic=elastic_to_proto(spec.elastic),
        preemptible=None if spec.preemptible else False,
        restart_cost_s=spec.restart_cost_s,
        anti_affinity=anti_affinity_to_proto(spec.anti_affinity),
        preempts=None if spec.preempts else False,
        reservation=spec.reservation,
        burst=burst_to_proto(allow=spec.burst, max_cost=spec.burst_max_cost),
    )


def spec_from_proto(
    proto: common_pb2.JobSpec,
    *,
    priority: int = 0,
    depends_on: Sequence[JobId] | None = None,
    array: tuple[JobId, int] | None = None,
) -> JobSpec:
    """One job of the spec, with the proto's documented defaults filled in.

    `depends_on` replaces the proto's own ids (names among them are the caller's to resolve);
    `array` is the array's id and this job's place in it.
    """
    wanted = dependency_ids(proto) if depends_on is None else depends_on
    return JobSpec(
        name=proto.name,
        queue=proto.queue or DEFAULT_QUEUE,
        groups=tuple(group_from_proto(group) for group in proto.groups),
        priority=priority,
        priority_class=proto.priority_class or DEFAULT_CLASS,
        labels=pairs(proto.labels),
        secrets=pairs(proto.secrets),
        output=proto.output,
        ports=tuple(proto.ports),
        time_limit_s=proto.time_limit_s,
        deadline_at=proto.deadline_at,
        best_effort=proto.best_effort,
        elastic=_if_given(proto, "elastic", elastic_from_proto),
        preempts=proto.preempts if proto.HasField("preempts") else True,
        preemptible=proto.preemptible if proto.HasField("preemptible") else True,
        restart_cost_s=proto.restart_cost_s,
        begin_at=proto.begin_at,
        depends_on=tuple(wanted),
        array_id=array[0] if array else None,
        array_index=array[1] if array else 0,
        topology=_if_given(proto, "topology", topology_from_proto),
        anti_affinity=_if_given(proto, "anti_affinity", anti_affinity_from_proto),
        checkpoint=_if_given(proto, "checkpoint", checkpoint_from_proto),
        on_lost=_ON_LOST_BACK.get(proto.on_lost, OnLost.HOLD),
        retries=proto.retries,
        grace_s=proto.grace_s or DEFAULT_GRACE_S,
        reservation=proto.reservation,
        burst=burst_allowed(proto.burst),
        burst_max_cost=proto.burst.max_cost,
    )


def dependency_ids(proto: common_pb2.JobSpec) -> tuple[JobId, ...]:
    """Dependencies given by id, in the order given."""
    return tuple(JobId(entry.id) for entry in proto.depends_on if entry.HasField("id"))


def dependency_names(proto: common_pb2.JobSpec) -> tuple[str, ...]:
    """Dependencies given by the name of a job in the same call, in the order given."""
    return tuple(entry.name for entry in proto.depends_on if entry.HasField("name"))


def encode_spec(spec: JobSpec, *, secrets: bool) -> bytes:
    """The spec's bytes, the same for equal specs."""
    return spec_to_proto(spec, secrets=secrets).SerializeToString(deterministic=True)


def encode_secrets(spec: JobSpec) -> bytes | None:
    """The secrets alone, apart from what everybody may read; None when there are none."""
    if not spec.secrets:
        return None
    return common_pb2.JobSpec(secrets=dict(spec.secrets)).SerializeToString(deterministic=True)


def parse_spec(data: bytes) -> common_pb2.JobSpec:
    """Bytes of `encode_spec`; raises WireError."""
    try:
        return common_pb2.JobSpec.FromString(data)
    except DecodeError as error:
        raise WireError(f"job spec: {error}") from error


def group_to_proto(group: TaskGroup) -> common_pb2.TaskGroup:
    """A task group."""
    return common_pb2.TaskGroup(
        name=group.name,
        count=group.count,
        min_count=group.min_count,
        shapes=[shape_to_proto(shape) for shape in group.shapes],
        run=group.run,
        setup=group.setup,
        envs=dict(group.envs),
        spread=spread_to_proto(group.spread),
    )


def group_from_proto(proto: common_pb2.TaskGroup) -> TaskGroup:
    """A task group; no `min_count` means a rigid one."""
    return TaskGroup(
        name=proto.name,
        count=proto.count,
        min_count=proto.min_count or proto.count,
        shapes=tuple(shape_from_proto(shape) for shape in proto.shapes),
        run=proto.run,
        setup=proto.setup,
        envs=pairs(proto.envs),
        spread=spread_from_proto(proto.spread) if proto.HasField("spread") else None,
    )


def _if_given(
    proto: common_pb2.JobSpec, field: GivenField, read: Callable[[Any], ValueT]
) -> ValueT | None:
    return read(getattr(proto, field)) if proto.HasField(field) else None
