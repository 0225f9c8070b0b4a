"""etcd's methods by their public paths, with our messages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message

from atoll.adapters.etcd.wire import etcdwire_pb2 as wire

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True, slots=True)
class Method(Generic[Request, Response]):
    """One method: where it is, and how its messages become bytes and back."""

    path: str
    encode: Callable[[Request], bytes]
    decode: Callable[[bytes], Response]


def _method(
    path: str, request: type[Request], response: type[Response]
) -> Method[Request, Response]:
    return Method(path, request.SerializeToString, response.FromString)


RANGE: Final = _method("/etcdserverpb.KV/Range", wire.RangeRequest, wire.RangeResponse)
PUT: Final = _method("/etcdserverpb.KV/Put", wire.PutRequest, wire.PutResponse)
DELETE: Final = _method(
    "/etcdserverpb.KV/DeleteRange", wire.DeleteRangeRequest, wire.DeleteRangeResponse
)
TXN: Final = _method("/etcdserverpb.KV/Txn", wire.TxnRequest, wire.TxnResponse)
COMPACT: Final = _method(
    "/etcdserverpb.KV/Compact", wire.CompactionRequest, wire.CompactionResponse
)
WATCH: Final = _method("/etcdserverpb.Watch/Watch", wire.WatchRequest, wire.WatchResponse)
GRANT: Final = _method(
    "/etcdserverpb.Lease/LeaseGrant", wire.LeaseGrantRequest, wire.LeaseGrantResponse
)
REVOKE: Final = _method(
    "/etcdserverpb.Lease/LeaseRevoke", wire.LeaseRevokeRequest, wire.LeaseRevokeResponse
)
KEEP_ALIVE: Final = _method(
    "/etcdserverpb.Lease/LeaseKeepAlive", wire.LeaseKeepAliveRequest, wire.LeaseKeepAliveResponse
)
STATUS: Final = _method("/etcdserverpb.Maintenance/Status", wire.StatusRequest, wire.StatusResponse)
