"""Requests that elections and the registry make, in words of keys."""

from dataclasses import dataclass

from atoll.adapters.etcd.connection import EtcdConnection
from atoll.adapters.etcd.methods import PUT, RANGE, TXN
from atoll.adapters.etcd.wire import etcdwire_pb2 as wire


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value as text, and the revision that created it."""

    key: str
    value: str
    created: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Entries as they were at one revision of the whole store."""

    entries: tuple[Entry, ...]
    revision: int


async def get(etcd: EtcdConnection, key: str) -> Reading:
    """The one entry of `key`, or none."""
    return _reading(await etcd.call(RANGE, wire.RangeRequest(key=key.encode())))


async def list_below(etcd: EtcdConnection, prefix: str) -> Reading:
    """The entries whose keys begin with `prefix`, those created first first."""
    request = wire.RangeRequest(
        key=prefix.encode(),
        range_end=end_of(prefix),
        sort_target=wire.RangeRequest.CREATE,
        sort_order=wire.RangeRequest.ASCEND,
    )
    return _reading(await etcd.call(RANGE, request))


async def put(etcd: EtcdConnection, key: str, value: str, *, lease: int = 0) -> None:
    """Set a key, which goes when its lease does; raises LeaseLost."""
    await etcd.call(PUT, wire.PutRequest(key=key.encode(), value=value.encode(), lease=lease))


async def create_or_read(etcd: EtcdConnection, key: str, value: str, *, lease: int) -> int:
    """The revision that created `key`: by this call, or by an earlier try whose answer was lost.

    Raises LeaseLost.
    """
    absent = wire.Compare(
        target=wire.Compare.CREATE, result=wire.Compare.EQUAL, key=key.encode(), create_revision=0
    )
    create = wire.PutRequest(key=key.encode(), value=value.encode(), lease=lease)
    read = wire.RangeRequest(key=key.encode())
    answer = await etcd.call(
        TXN,
        wire.TxnRequest(
            compare=[absent],
            success=[wire.RequestOp(request_put=create)],
            failure=[wire.RequestOp(request_range=read)],
        ),
    )
    if answer.succeeded:
        return answer.header.revision
    return answer.responses[0].response_range.kvs[0].create_revision


async def standing(etcd: EtcdConnection, *, prefix: str, key: str, created: int) -> Reading:
    """`key` and the one created last before it below `prefix`, as far as they exist."""
    own = wire.RangeRequest(key=key.encode())
    ahead = wire.RangeRequest(
        key=prefix.encode(),
        range_end=end_of(prefix),
        max_create_revision=created - 1,
        sort_target=wire.RangeRequest.CREATE,
        sort_order=wire.RangeRequest.DESCEND,
        limit=1,
    )
    operations = [wire.RequestOp(request_range=request) for request in (own, ahead)]
    answer = await etcd.call(TXN, wire.TxnRequest(success=operations))
    found = [kv for each in answer.responses for kv in each.response_range.kvs]
    return Reading(tuple(map(_entry, found)), answer.header.revision)


def end_of(prefix: str) -> bytes:
    """The first key after all that begin with `prefix`, which must not be empty."""
    raw = prefix.encode()
    return raw[:-1] + bytes((raw[-1] + 1,))


def _reading(answer: wire.RangeResponse) -> Reading:
    return Reading(tuple(map(_entry, answer.kvs)), answer.header.revision)


def _entry(kv: wire.KeyValue) -> Entry:
    return Entry(kv.key.decode(), kv.value.decode(errors="replace"), kv.create_revision)
