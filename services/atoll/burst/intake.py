"""Requests of the API as the use cases take them."""

import hashlib

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.burst.usecases.by_hand import Request
from atoll.core.model.burst import BurstPolicy
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.wire.burst import policy_from_proto, queue_from_proto
from atoll.wire.enums import WireError


def request_of(request: pb.RequestCapacityRequest) -> Request:
    """What is asked for. What tells a repeated call from another: all of it but its key."""
    body = pb.RequestCapacityRequest()
    body.CopyFrom(request)
    body.ClearField("request_id")
    return Request(
        request.count,
        offer=request.offer,
        kind=request.kind,
        queue=queue_from_proto(request.queue),
        keep_s=request.keep_s,
        key=request.request_id.lower(),
        body_hash=hashlib.sha256(body.SerializeToString(deterministic=True)).digest(),
        why=request.why,
    )


def policy_of(request: pb.SetBurstPolicyRequest) -> tuple[BurstPolicy, list[str]]:
    """New values, and the paths of what is to change; raises InvalidInput."""
    try:
        policy = policy_from_proto(request.policy)
    except WireError as error:
        raise InvalidInput((FieldViolation("policy.markets", str(error)),)) from None
    return policy, list(request.update_mask.paths)
