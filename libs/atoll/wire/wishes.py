"""What a job wishes of where and when it runs: topology, distance, checkpoints, sizes."""

from atoll.api.common.v1 import common_pb2
from atoll.core.model.spec import (
    NODE_LEVEL,
    AntiAffinity,
    Checkpoint,
    Elastic,
    Spread,
    Topology,
)


def topology_to_proto(topology: Topology | None) -> common_pb2.Topology | None:
    """A topology wish."""
    if topology is None:
        return None
    return common_pb2.Topology(level=topology.level, required=topology.required)


def topology_from_proto(proto: common_pb2.Topology) -> Topology:
    """A topology wish."""
    return Topology(level=proto.level, required=proto.required)


def spread_to_proto(spread: Spread | None) -> common_pb2.Spread | None:
    """A bound of tasks in a domain."""
    return None if spread is None else common_pb2.Spread(level=spread.level, most=spread.most)


def spread_from_proto(proto: common_pb2.Spread) -> Spread:
    """A bound of tasks in a domain."""
    return Spread(level=proto.level, most=proto.most)


def anti_affinity_to_proto(apart: AntiAffinity | None) -> common_pb2.AntiAffinity | None:
    """What a job is kept apart from."""
    return None if apart is None else common_pb2.AntiAffinity(name=apart.name, level=apart.level)


def anti_affinity_from_proto(proto: common_pb2.AntiAffinity) -> AntiAffinity:
    """What a job is kept apart from."""
    return AntiAffinity(name=proto.name, level=proto.level or NODE_LEVEL)


def elastic_to_proto(elastic: Elastic | None) -> common_pb2.Elastic | None:
    """Throughput per size."""
    if elastic is None:
        return None
    return common_pb2.Elastic(
        throughput=dict(elastic.throughput),
        work=elastic.work,
        rescale_cost_s=elastic.rescale_cost_s,
    )


def elastic_from_proto(proto: common_pb2.Elastic) -> Elastic:
    """Throughput per size."""
    throughput, work = tuple(sorted(proto.throughput.items())), proto.work
    if not proto.HasField("rescale_cost_s"):
        return Elastic(throughput, work)
    return Elastic(throughput, work, rescale_cost_s=proto.rescale_cost_s)


def checkpoint_to_proto(checkpoint: Checkpoint | None) -> common_pb2.Checkpoint | None:
    """How a run saves its work."""
    if checkpoint is None:
        return None
    return common_pb2.Checkpoint(
        signal=checkpoint.signal, grace_s=checkpoint.grace_s, interval_s=checkpoint.interval_s
    )


def checkpoint_from_proto(proto: common_pb2.Checkpoint) -> Checkpoint:
    """How a run saves its work."""
    return Checkpoint(
        signal=proto.signal or Checkpoint().signal,
        grace_s=proto.grace_s,
        interval_s=proto.interval_s,
    )


def burst_to_proto(*, allow: bool, max_cost: int) -> common_pb2.Burst | None:
    """What a job says of rented capacity; None when it says nothing."""
    if allow and not max_cost:
        return None
    return common_pb2.Burst(allow=None if allow else False, max_cost=max_cost)


def burst_allowed(proto: common_pb2.Burst) -> bool:
    """Whether it may run on rented capacity at all."""
    return proto.allow if proto.HasField("allow") else True
