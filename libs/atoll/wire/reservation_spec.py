"""What a user says of a reservation: what, for whom, when, and how."""

from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.core.model.ids import ClusterName
from atoll.core.model.reservation import (
    BIND_BEFORE_S,
    Amount,
    Flexible,
    Preference,
    ReservationSpec,
    What,
    When,
    WholeDomains,
    WholeNodes,
)
from atoll.wire.booking import (
    ON_END_NUMBERS,
    on_end_from_proto,
    owners_from_proto,
    owners_to_proto,
)
from atoll.wire.enums import WireError, inverse, known, to_numbers
from atoll.wire.shape import device_request_from_proto, device_request_to_proto, pairs

CACHED_SPECS: Final = 1 << 14
CACHED_BYTES: Final = 4096

_PREFERENCES = to_numbers(Preference, pb.Flexible.Preference, prefix="PREFERENCE_")
_PREFERENCES_BACK = inverse(_PREFERENCES)


def spec_to_proto(spec: ReservationSpec) -> pb.ReservationSpec:
    """A whole spec."""
    return pb.ReservationSpec(
        name=spec.name,
        what=what_to_proto(spec.what),
        owners=owners_to_proto(spec.owners),
        when=when_to_proto(spec.when),
        priority=spec.priority,
        override=spec.override,
        bind_before_s=spec.bind_before_s,
        pinned=spec.pinned,
        lend=spec.lend,
        on_end=ON_END_NUMBERS[spec.on_end],
        end_grace_s=spec.end_grace_s,
        release_after_idle_s=spec.release_after_idle_s,
        charge=spec.charge,
        note=spec.note,
    )


def spec_from_proto(proto: pb.ReservationSpec) -> ReservationSpec:
    """The same back, defaults filled in; raises WireError for enum values of later versions."""
    return ReservationSpec(
        name=proto.name,
        what=what_from_proto(proto.what),
        when=when_from_proto(proto.when),
        owners=owners_from_proto(proto.owners),
        priority=proto.priority,
        override=proto.override,
        bind_before_s=proto.bind_before_s if proto.HasField("bind_before_s") else BIND_BEFORE_S,
        pinned=proto.pinned,
        lend=proto.lend if proto.HasField("lend") else True,
        on_end=on_end_from_proto(proto.on_end),
        end_grace_s=proto.end_grace_s,
        release_after_idle_s=proto.release_after_idle_s,
        charge=proto.charge,
        note=proto.note,
    )


def encode_spec(spec: ReservationSpec) -> bytes:
    """A spec, as a row keeps it."""
    return spec_to_proto(spec).SerializeToString(deterministic=True)


def decode_spec(data: bytes) -> ReservationSpec:
    """The spec that `encode_spec` wrote; raises WireError."""
    return _cached(data) if len(data) <= CACHED_BYTES else _decoded(data)


def encode_what(what: What) -> bytes:
    """What is booked, as a row keeps it."""
    return what_to_proto(what).SerializeToString(deterministic=True)


def decode_what(data: bytes) -> What:
    """What `encode_what` wrote; raises WireError."""
    try:
        return what_from_proto(pb.What.FromString(data))
    except DecodeError as error:
        raise WireError(f"what is booked: {error}") from error


def what_to_proto(what: What) -> pb.What:
    """What is booked."""
    return pb.What(
        amounts=[_amount_to_proto(amount) for amount in what.amounts],
        nodes=None if what.nodes is None else _nodes_to_proto(what.nodes),
        domains=None if what.domains is None else _domains_to_proto(what.domains),
        percent=what.percent,
        clusters=what.clusters,
        split=what.split,
    )


def what_from_proto(proto: pb.What) -> What:
    """The same back."""
    return What(
        amounts=tuple(_amount_from_proto(amount) for amount in proto.amounts),
        nodes=_nodes_from_proto(proto.nodes) if proto.HasField("nodes") else None,
        domains=_domains_from_proto(proto.domains) if proto.HasField("domains") else None,
        percent=proto.percent,
        clusters=tuple(ClusterName(name) for name in proto.clusters),
        split=proto.split,
    )


def when_to_proto(when: When) -> pb.When:
    """When, and how often."""
    proto = pb.When(length_s=when.length_s, zone=when.zone, rrule=when.rrule, exdates=when.exdates)
    if when.start_at is not None:
        proto.start_at = when.start_at
    elif when.start_local:
        proto.start_local = when.start_local
    elif when.flexible is not None:
        proto.flexible.CopyFrom(_flexible_to_proto(when.flexible))
    return proto


def when_from_proto(proto: pb.When) -> When:
    """The same back."""
    return When(
        length_s=proto.length_s,
        start_at=proto.start_at if proto.HasField("start_at") else None,
        start_local=proto.start_local,
        flexible=_flexible_from_proto(proto.flexible) if proto.HasField("flexible") else None,
        zone=proto.zone,
        rrule=proto.rrule,
        exdates=tuple(proto.exdates),
    )


def preference_from_proto(number: pb.Flexible.Preference.ValueType) -> Preference:
    """Not given means early."""
    return Preference.EARLY if not number else known(_PREFERENCES_BACK, number, what="preference")


def preference_to_proto(preference: Preference) -> pb.Flexible.Preference.ValueType:
    """Which of several windows is taken."""
    return _PREFERENCES[preference]


def _amount_to_proto(amount: Amount) -> pb.Amount:
    return pb.Amount(
        device=None if amount.device is None else device_request_to_proto(amount.device),
        count=amount.count,
        cpu_milli=amount.cpu_milli,
        memory_bytes=amount.memory_bytes,
    )


def _amount_from_proto(proto: pb.Amount) -> Amount:
    return Amount(
        device=device_request_from_proto(proto.device) if proto.HasField("device") else None,
        count=proto.count,
        cpu_milli=proto.cpu_milli if proto.HasField("cpu_milli") else None,
        memory_bytes=proto.memory_bytes if proto.HasField("memory_bytes") else None,
    )


def _nodes_to_proto(nodes: WholeNodes) -> pb.WholeNodes:
    return pb.WholeNodes(count=nodes.count, names=nodes.names, labels=dict(nodes.labels))


def _nodes_from_proto(proto: pb.WholeNodes) -> WholeNodes:
    return WholeNodes(proto.count, tuple(proto.names), pairs(proto.labels))


def _domains_to_proto(domains: WholeDomains) -> pb.WholeDomains:
    return pb.WholeDomains(level=domains.level, count=domains.count, names=domains.names)


def _domains_from_proto(proto: pb.WholeDomains) -> WholeDomains:
    return WholeDomains(proto.level, proto.count, tuple(proto.names))


def _flexible_to_proto(flexible: Flexible) -> pb.Flexible:
    return pb.Flexible(
        earliest_at=flexible.earliest_at,
        latest_end_at=flexible.latest_end_at,
        preference=preference_to_proto(flexible.preference),
    )


def _flexible_from_proto(proto: pb.Flexible) -> Flexible:
    preference = preference_from_proto(proto.preference)
    return Flexible(proto.earliest_at, proto.latest_end_at, preference)


@lru_cache(maxsize=CACHED_SPECS)
def _cached(data: bytes) -> ReservationSpec:
    return _decoded(data)


def _decoded(data: bytes) -> ReservationSpec:
    try:
        return spec_from_proto(pb.ReservationSpec.FromString(data))
    except DecodeError as error:
        raise WireError(f"reservation: {error}") from error
