"""Standing rules: what books by itself, and what it did."""

from typing import Final, assert_never

from google.protobuf.message import DecodeError

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.core.model.ids import ClusterName, QueueName, Tenant
from atoll.core.model.reservation import ReservationId
from atoll.core.model.standing_rule import (
    NO_TENANT,
    InteractiveHoursRule,
    LargeJobRule,
    RollingMaintenanceRule,
    Rule,
    RuleAction,
    RuleKind,
)
from atoll.wire.enums import WireError
from atoll.wire.reservation_spec import when_from_proto, when_to_proto

QUANTILE: Final = 0.9


def rule_to_proto(rule: Rule) -> pb.Rule:
    """A whole rule."""
    proto = pb.Rule(name=rule.name, enabled=rule.enabled, etag=rule.etag, status=rule.status)
    match rule.kind:
        case LargeJobRule() as kind:
            proto.large_job.CopyFrom(_large_to_proto(kind))
        case RollingMaintenanceRule() as kind:
            proto.rolling_maintenance.CopyFrom(_rolling_to_proto(kind))
        case InteractiveHoursRule() as kind:
            proto.interactive_hours.CopyFrom(_hours_to_proto(kind))
        case _ as never:
            assert_never(never)
    return proto


def rule_from_proto(proto: pb.Rule, *, tenant: Tenant = NO_TENANT) -> Rule:
    """The same back; raises WireError for a rule without its kind."""
    return Rule(
        name=proto.name,
        kind=_kind_from_proto(proto),
        enabled=proto.enabled,
        tenant=tenant,
        etag=proto.etag,
        status=proto.status,
    )


def encode_rule(rule: Rule) -> bytes:
    """A rule, as a row keeps it."""
    return rule_to_proto(rule).SerializeToString(deterministic=True)


def decode_rule(data: bytes, *, tenant: Tenant, etag: int, status: str) -> Rule:
    """The rule that `encode_rule` wrote, with what its row tells; raises WireError."""
    try:
        proto = pb.Rule.FromString(data)
    except DecodeError as error:
        raise WireError(f"rule: {error}") from error
    return Rule(
        proto.name,
        _kind_from_proto(proto),
        enabled=proto.enabled,
        tenant=tenant,
        etag=etag,
        status=status,
    )


def action_to_proto(action: RuleAction) -> pb.RuleAction:
    """One thing that a rule did."""
    return pb.RuleAction(
        rule=action.rule,
        at=action.at,
        what=action.what,
        why=action.why,
        reservation_id=action.reservation,
    )


def action_from_proto(proto: pb.RuleAction) -> RuleAction:
    """The same back."""
    return RuleAction(
        proto.rule,
        proto.at,
        what=proto.what,
        why=proto.why,
        reservation=ReservationId(proto.reservation_id),
    )


def _kind_from_proto(proto: pb.Rule) -> RuleKind:
    match proto.WhichOneof("kind"):
        case "large_job":
            return _large_from_proto(proto.large_job)
        case "rolling_maintenance":
            return _rolling_from_proto(proto.rolling_maintenance)
        case "interactive_hours":
            return _hours_from_proto(proto.interactive_hours)
        case _:
            raise WireError("rule: needs one of large_job, rolling_maintenance, interactive_hours")


def _large_to_proto(rule: LargeJobRule) -> pb.LargeJobRule:
    return pb.LargeJobRule(
        devices_above=rule.devices_above, guaranteed=rule.guaranteed, queues=rule.queues
    )


def _large_from_proto(proto: pb.LargeJobRule) -> LargeJobRule:
    queues = tuple(QueueName(queue) for queue in proto.queues)
    return LargeJobRule(proto.devices_above, proto.guaranteed, queues)


def _rolling_to_proto(rule: RollingMaintenanceRule) -> pb.RollingMaintenanceRule:
    return pb.RollingMaintenanceRule(
        cluster=rule.cluster,
        level=rule.level,
        most_at_once=rule.most_at_once,
        length_s=rule.length_s,
        start_at=rule.start_at,
        end_at=rule.end_at,
        hours_rrule=rule.hours_rrule,
        zone=rule.zone,
    )


def _rolling_from_proto(proto: pb.RollingMaintenanceRule) -> RollingMaintenanceRule:
    return RollingMaintenanceRule(
        cluster=ClusterName(proto.cluster),
        level=proto.level,
        most_at_once=proto.most_at_once,
        length_s=proto.length_s,
        start_at=proto.start_at,
        end_at=proto.end_at,
        hours_rrule=proto.hours_rrule,
        zone=proto.zone,
    )


def _hours_to_proto(rule: InteractiveHoursRule) -> pb.InteractiveHoursRule:
    return pb.InteractiveHoursRule(
        queue=rule.queue,
        kind=rule.kind,
        when=when_to_proto(rule.when),
        weeks=rule.weeks,
        quantile=rule.quantile,
        least=rule.least,
        most=rule.most,
        cluster=rule.cluster,
    )


def _hours_from_proto(proto: pb.InteractiveHoursRule) -> InteractiveHoursRule:
    return InteractiveHoursRule(
        queue=QueueName(proto.queue),
        kind=proto.kind,
        when=when_from_proto(proto.when),
        weeks=proto.weeks,
        quantile=proto.quantile if proto.HasField("quantile") else QUANTILE,
        least=proto.least,
        most=proto.most,
        cluster=ClusterName(proto.cluster),
    )
