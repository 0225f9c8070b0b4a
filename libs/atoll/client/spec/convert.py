"""From a parsed spec to the JobSpec of the wire."""

from collections.abc import Iterator
from typing import Final

from atoll.api.common.v1 import common_pb2 as pb
from atoll.client.spec.models import Alternative, Group, JobRef, Resources, Spec
from atoll.core.model.resources import ANY_KIND, DeviceRequest

DEFAULT_CPU_MILLI: Final = 1000
DEFAULT_MEMORY_BYTES: Final = 1 << 30
ONLY_GROUP: Final = "main"
_ON_LOST: Final = {"hold": pb.ON_LOST_HOLD, "requeue": pb.ON_LOST_REQUEUE}


def to_proto(spec: Spec, *, now: float) -> pb.JobSpec:
    """The JobSpec to submit at `now` (unix seconds, for a relative `begin`)."""
    return pb.JobSpec(
        name=spec.name or "",
        queue=spec.queue,
        groups=[_group(spec, group) for group in spec.groups or [_only_group(spec)]],
        priority_class=spec.priority_class,
        labels=spec.labels,
        secrets=spec.secrets,
        output=spec.output,
        ports=spec.ports,
        time_limit_s=spec.time_limit or 0.0,
        begin_at=spec.begin.at(now) if spec.begin else 0.0,
        depends_on=[_dependency(job) for job in spec.depends_on],
        array=spec.array or 0,
        topology=_topology(spec),
        checkpoint=_checkpoint(spec),
        on_lost=_ON_LOST[spec.on_lost],
        retries=spec.retries,
    )


def _only_group(spec: Spec) -> Group:
    return Group.model_construct(
        name=ONLY_GROUP,
        num_nodes=spec.num_nodes,
        gang=spec.gang,
        run=spec.run or "",
        setup=None,
        envs={},
        resources=None,
    )


def _group(spec: Spec, group: Group) -> pb.TaskGroup:
    count = group.gang.max if group.gang else group.num_nodes or 1
    return pb.TaskGroup(
        name=group.name,
        count=count,
        min_count=group.gang.min if group.gang else count,
        shapes=list(_shapes(group.resources or spec.resources)),
        run=group.run,
        setup=(spec.setup if group.setup is None else group.setup) or "",
        envs={**spec.envs, **group.envs},
    )


def _shapes(resources: Resources) -> Iterator[pb.TaskShape]:
    for alternative in resources.any_of or [Alternative()]:
        yield pb.TaskShape(
            cpu_milli=alternative.cpus or resources.cpus or DEFAULT_CPU_MILLI,
            memory_bytes=alternative.memory or resources.memory or DEFAULT_MEMORY_BYTES,
            device=_device(resources, alternative),
            labels={**resources.labels, **alternative.labels},
        )


def _device(resources: Resources, alternative: Alternative) -> pb.DeviceRequest | None:
    request = alternative.accelerators or resources.accelerators
    memory = alternative.accelerator_memory or resources.accelerator_memory
    if memory:
        kind = request.kind if request else ANY_KIND
        return pb.DeviceRequest(kind=kind, count=1, memory_bytes=memory)
    return _request(request) if request else None


def _request(request: DeviceRequest) -> pb.DeviceRequest:
    return pb.DeviceRequest(
        kind=request.kind,
        count=request.count,
        blocks=0 if request.profile else request.blocks,
        profile=request.profile,
    )


def _dependency(job: JobRef) -> pb.Dependency:
    return pb.Dependency(id=job) if isinstance(job, int) else pb.Dependency(name=job)


def _topology(spec: Spec) -> pb.Topology | None:
    if spec.topology is None:
        return None
    return pb.Topology(level=spec.topology.same, required=spec.topology.required)


def _checkpoint(spec: Spec) -> pb.Checkpoint | None:
    if (wish := spec.checkpoint) is None:
        return None
    return pb.Checkpoint(
        signal=wish.signal, grace_s=wish.grace or 0.0, interval_s=wish.interval or 0.0
    )
