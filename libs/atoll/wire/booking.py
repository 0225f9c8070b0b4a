"""What bookings hold and for whom: shares of nodes, owners, what happens at the end."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.core.model.booking import NodeShare, OnEnd, Owners
from atoll.core.model.ids import ClusterName, NodeId, QueueName
from atoll.wire.enums import WireError, inverse, known, to_numbers
from atoll.wire.placement import grant_from_proto, grant_to_proto

CACHED_SHARES: Final = 1 << 14
"""A booking that recurs often has the same place each time."""
CACHED_BYTES: Final = 4096

ON_END_NUMBERS: Final = to_numbers(OnEnd, pb.OnEnd, prefix="ON_END_")
ON_END_VALUES: Final = inverse(ON_END_NUMBERS)


def on_end_from_proto(number: pb.OnEnd.ValueType) -> OnEnd:
    """Not given means stop; raises WireError for one that this version does not know."""
    return OnEnd.STOP if not number else known(ON_END_VALUES, number, what="on_end")


def owners_to_proto(owners: Owners) -> pb.Owners:
    """Whose jobs a booking is for."""
    return pb.Owners(queues=owners.queues, users=owners.users, labels=dict(owners.labels))


def owners_from_proto(proto: pb.Owners) -> Owners:
    """The same back; labels by key."""
    return Owners(
        queues=tuple(QueueName(queue) for queue in proto.queues),
        users=tuple(proto.users),
        labels=tuple(sorted(proto.labels.items())),
    )


def part_to_proto(cluster: ClusterName, shares: Iterable[NodeShare]) -> pb.Part:
    """A place in one cluster."""
    return pb.Part(cluster=cluster, shares=[share_to_proto(share) for share in shares])


def share_to_proto(share: NodeShare) -> pb.NodeShare:
    """What of one node is booked."""
    return pb.NodeShare(
        node_id=share.node,
        node=share.node_name,
        cpu_milli=share.cpu_milli,
        memory_bytes=share.memory_bytes,
        devices=[grant_to_proto(grant) for grant in share.devices],
        whole=share.whole,
    )


def share_from_proto(proto: pb.NodeShare) -> NodeShare:
    """The same back."""
    return NodeShare(
        node=NodeId(proto.node_id),
        node_name=proto.node,
        cpu_milli=proto.cpu_milli,
        memory_bytes=proto.memory_bytes,
        devices=tuple(grant_from_proto(grant) for grant in proto.devices),
        whole=proto.whole,
    )


def encode_shares(shares: Iterable[NodeShare]) -> bytes:
    """Shares of nodes, as a row keeps them."""
    return pb.Part(shares=[share_to_proto(share) for share in shares]).SerializeToString()


def decode_shares(data: bytes) -> tuple[NodeShare, ...]:
    """The shares that `encode_shares` wrote; raises WireError."""
    return _cached(data) if len(data) <= CACHED_BYTES else _decoded(data)


@lru_cache(maxsize=CACHED_SHARES)
def _cached(data: bytes) -> tuple[NodeShare, ...]:
    return _decoded(data)


def _decoded(data: bytes) -> tuple[NodeShare, ...]:
    try:
        return tuple(share_from_proto(share) for share in pb.Part.FromString(data).shares)
    except DecodeError as error:
        raise WireError(f"shares: {error}") from error
