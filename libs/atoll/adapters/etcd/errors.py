"""What etcd answers when it does not answer."""

from typing import Final

import grpc
import grpc.aio

from atoll.ports.election import ElectionUnavailable
from atoll.ports.registry import RegistryUnavailable


class EtcdUnavailable(ElectionUnavailable, RegistryUnavailable):
    """No endpoint answered in time; another try may succeed."""


class EtcdRejected(ElectionUnavailable, RegistryUnavailable):
    """etcd understood and refused; another try of the same would be refused again."""


class LeaseLost(Exception):
    """The lease expired, was revoked, or may have expired for all that is known."""


class Compacted(Exception):
    """The revision asked for is no longer kept: list again."""


PASSING: Final = frozenset({
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    # etcd's own words for a changing leader come under these, depending on the release.
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
    # Too many requests, or a full store that waits for its operator.
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNKNOWN,
})
"""What another endpoint, or the same a little later, may answer differently."""


def translated(error: grpc.aio.AioRpcError, endpoint: str) -> Exception:
    """The error in our words; NOT_FOUND can only mean a lease."""
    said = f"etcd at {endpoint}: {error.code().name}: {error.details()}"
    if error.code() == grpc.StatusCode.NOT_FOUND:
        return LeaseLost(said)
    if error.code() in PASSING:
        return EtcdUnavailable(said)
    return EtcdRejected(said)
