"""Reasons. Their codes travel as text, so that an old reader can show a new one."""

from atoll.api.common.v1 import common_pb2
from atoll.core.model.reason import Reason, ReasonCode
from atoll.wire.enums import WireError


def reason_to_proto(reason: Reason) -> common_pb2.Reason:
    """A reason with its numbers; its metadata stays inside."""
    return common_pb2.Reason(
        code=reason.code.value,
        message=reason.message,
        cluster=reason.cluster,
        needed=reason.needed,
        available=reason.available,
        unit=reason.unit,
        count=reason.count,
        help=reason.help,
    )


def reason_from_proto(proto: common_pb2.Reason) -> Reason:
    """A reason with its numbers; raises WireError for a code that this version does not know."""
    code = code_from_text(proto.code)
    if code is None:
        raise WireError(f"reason: unknown code {proto.code!r}")
    return Reason(
        code=code,
        message=proto.message,
        cluster=proto.cluster,
        needed=proto.needed,
        available=proto.available,
        unit=proto.unit,
        count=proto.count,
        help=proto.help,
    )


def code_to_text(code: ReasonCode | None) -> str:
    """The published code, empty for none."""
    return "" if code is None else code.value


def code_from_text(text: str) -> ReasonCode | None:
    """The code; None for no text, and for a code that a newer version published."""
    return ReasonCode(text) if text in ReasonCode.__members__ else None
