"""From a parsed spec to the JobSpec of the wire."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from atoll.api.common.v1 import common_pb2 as pb
from atoll.client.spec.fields import NOT, JobRef
from atoll.client.spec.models import (
    Alternative,
    Burst,
    Elastic,
    Gang,
    Group,
    Resources,
    Spec,
    Spread,
)
from atoll.core.model.resources import ANY_KIND, DeviceRequest
from atoll.wire.wishes import burst_to_proto

DEFAULT_CPU_MILLI: Final = 1000
DEFAULT_MEMORY_BYTES: Final = 1 << 30
ONLY_GROUP: Final = "main"
_ON_LOST: Final = {"hold": pb.ON_LOST_HOLD, "requeue": pb.ON_LOST_REQUEUE}


def to_proto(spec: Spec, *, now: float) -> pb.JobSpec:
    """The JobSpec to submit at `now` (unix seconds, for what is relative to it)."""
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
        deadline_at=spec.deadline.at(now) if spec.deadline else 0.0,
        best_effort=spec.best_effort,
        elastic=_elastic(spec.elastic),
        depends_on=[_dependency(job) for job in spec.depends_on],
        array=spec.array or 0,
        topology=_topology(spec),
        checkpoint=_checkpoint(spec),
        on_lost=_ON_LOST[spec.on_lost],
        retries=spec.retries,
        anti_affinity=_anti_affinity(spec),
        preemptible=None if spec.preemptible else False,
        preempts=None if spec.preempts else False,
        restart_cost_s=spec.restart_cost or 0.0,
        reservation=spec.reservation,
        burst=_burst(spec.burst),
    )


def _elastic(wish: Elastic | None) -> pb.Elastic | None:
    if wish is None:
        return None
    return pb.Elastic(throughput=wish.throughput, work=wish.work, rescale_cost_s=wish.rescale_cost)


def _burst(wish: Burst | None) -> pb.Burst | None:
    if wish is None:
        return None
    return burst_to_proto(allow=wish.allow, max_cost=wish.max_cost or 0)


def _only_group(spec: Spec) -> Group:
    return Group.model_construct(
        name=ONLY_GROUP,
        num_nodes=spec.num_nodes,
        gang=spec.gang or _gang_of_sizes(spec),
        run=spec.run or "",
        setup=None,
        envs={},
        resources=None,
        spread=None,
    )


def _gang_of_sizes(spec: Spec) -> Gang | None:
    if spec.elastic is None or spec.num_nodes is not None:
        return None
    return Gang(min=min(spec.elastic.throughput), max=max(spec.elastic.throughput))


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
        spread=_spread(group.spread or spec.spread),
    )


def _shapes(resources: Resources) -> Iterator[pb.TaskShape]:
    for alternative in resources.any_of or [Alternative()]:
        yield pb.TaskShape(
            cpu_milli=alternative.cpus or resources.cpus or DEFAULT_CPU_MILLI,
            memory_bytes=alternative.memory or resources.memory or DEFAULT_MEMORY_BYTES,
            device=_device(resources, alternative),
            labels=_labels({**resources.labels, **alternative.labels}),
            labels_not=_labels_not({**resources.labels, **alternative.labels}),
        )


def _labels(wishes: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {
        key: text for key, texts in wishes.items() for text in texts if not text.startswith(NOT)
    }


def _labels_not(wishes: Mapping[str, Sequence[str]]) -> list[pb.Label]:
    return [
        pb.Label(key=key, value=text.removeprefix(NOT))
        for key, texts in wishes.items()
        for text in texts
        if text.startswith(NOT)
    ]


def _spread(wish: Spread | None) -> pb.Spread | None:
    return None if wish is None else pb.Spread(level=wish.level, most=wish.most)


def _anti_affinity(spec: Spec) -> pb.AntiAffinity | None:
    wish = spec.anti_affinity
    return None if wish is None else pb.AntiAffinity(name=wish.name, level=wish.level)


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
