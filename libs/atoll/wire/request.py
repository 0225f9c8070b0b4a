"""What the scheduler needs to know of a job, as canonical bytes.

A request is written as a spec that has nothing else. Equal requests give equal bytes, and equal
bytes give the same object again: a queue of a million jobs has few shapes.
"""

from functools import lru_cache

from atoll.api.common.v1 import common_pb2
from atoll.core.model.plan import GangRequest, GroupRequest, RunTerms
from atoll.core.model.spec import OnLost
from atoll.wire.shape import shape_from_proto, shape_to_proto
from atoll.wire.spec import ON_LOST, parse_spec
from atoll.wire.wishes import (
    anti_affinity_from_proto,
    anti_affinity_to_proto,
    burst_allowed,
    burst_to_proto,
    elastic_from_proto,
    elastic_to_proto,
    spread_from_proto,
    spread_to_proto,
    topology_from_proto,
    topology_to_proto,
)

UNSPECIFIED = common_pb2.ON_LOST_UNSPECIFIED
CACHED_REQUESTS = 1 << 16
CACHED_BYTES = 4096
"""Larger requests are rare, and are not kept: what is cached must stay small."""


def encode_request(request: GangRequest) -> bytes:
    """Canonical bytes of a request; its marks are not in it, for they change with bookings."""
    terms = request.terms
    proto = common_pb2.JobSpec(
        groups=[_group_to_proto(group) for group in request.groups],
        topology=topology_to_proto(request.topology),
        on_lost=ON_LOST[OnLost.REQUEUE] if request.needs_guard else UNSPECIFIED,
        anti_affinity=anti_affinity_to_proto(request.anti_affinity),
        time_limit_s=terms.time_limit_s,
        checkpoint=_interval(terms.checkpoint_interval_s),
        restart_cost_s=terms.restart_cost_s,
        grace_s=terms.grace_s,
        preemptible=None if terms.preemptible else False,
        preempts=None if terms.preempts else False,
        elastic=elastic_to_proto(terms.elastic),
        reservation=request.reservation,
        burst=burst_to_proto(allow=request.burst, max_cost=request.burst_max_cost),
    )
    return proto.SerializeToString(deterministic=True)


def decode_request(data: bytes) -> GangRequest:
    """The request that `encode_request` wrote; raises WireError."""
    return _cached(data) if len(data) <= CACHED_BYTES else _decoded(data)


@lru_cache(maxsize=CACHED_REQUESTS)
def _cached(data: bytes) -> GangRequest:
    return _decoded(data)


def _decoded(data: bytes) -> GangRequest:
    proto = parse_spec(data)
    return GangRequest(
        groups=tuple(_group_from_proto(group) for group in proto.groups),
        topology=topology_from_proto(proto.topology) if proto.HasField("topology") else None,
        needs_guard=proto.on_lost == ON_LOST[OnLost.REQUEUE],
        terms=_terms(proto),
        anti_affinity=(
            anti_affinity_from_proto(proto.anti_affinity)
            if proto.HasField("anti_affinity")
            else None
        ),
        reservation=proto.reservation,
        burst=burst_allowed(proto.burst),
        burst_max_cost=proto.burst.max_cost,
    )


def _terms(proto: common_pb2.JobSpec) -> RunTerms:
    return RunTerms(
        time_limit_s=proto.time_limit_s,
        checkpoint_interval_s=proto.checkpoint.interval_s,
        restart_cost_s=proto.restart_cost_s,
        grace_s=proto.grace_s,
        preemptible=proto.preemptible if proto.HasField("preemptible") else True,
        preempts=proto.preempts if proto.HasField("preempts") else True,
        elastic=elastic_from_proto(proto.elastic) if proto.HasField("elastic") else None,
    )


def _interval(seconds: float) -> common_pb2.Checkpoint | None:
    return common_pb2.Checkpoint(interval_s=seconds) if seconds else None


def _group_to_proto(group: GroupRequest) -> common_pb2.TaskGroup:
    return common_pb2.TaskGroup(
        count=group.count,
        min_count=group.min_count,
        shapes=[shape_to_proto(shape) for shape in group.shapes],
        spread=spread_to_proto(group.spread),
    )


def _group_from_proto(proto: common_pb2.TaskGroup) -> GroupRequest:
    return GroupRequest(
        count=proto.count,
        min_count=proto.min_count,
        shapes=tuple(shape_from_proto(shape) for shape in proto.shapes),
        spread=spread_from_proto(proto.spread) if proto.HasField("spread") else None,
    )
