"""The verbs about rented capacity as values: what is sent, and how the answer is read."""

from collections.abc import Iterable

from google.protobuf.field_mask_pb2 import FieldMask

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.client import burst_reading as reading
from atoll.client.burst_views import (
    BurstExplanation,
    BurstStatus,
    ForecastInfo,
    InstanceInfo,
    OfferInfo,
    PolicyInfo,
    SpendHistory,
)
from atoll.client.calls import BURST, Call, Page


def status() -> Call[pb.GetBurstStatusResponse, BurstStatus]:
    """Where renting stands."""
    return Call(
        BURST,
        "GetBurstStatus",
        pb.GetBurstStatusRequest(),
        pb.GetBurstStatusResponse,
        reading.status,
    )


def forecast(
    kind: str, queue: str, *, horizon_s: float, past_s: float
) -> Call[pb.GetForecastResponse, list[ForecastInfo]]:
    """Demand to come."""
    return Call(
        BURST,
        "GetForecast",
        pb.GetForecastRequest(kind=kind, queue=queue, horizon_s=horizon_s, past_s=past_s),
        pb.GetForecastResponse,
        lambda reply: [reading.forecast(each) for each in reply.series],
    )


def offers(kind: str, queue: str) -> Call[pb.ListOffersResponse, list[OfferInfo]]:
    """What can be rented."""
    return Call(
        BURST,
        "ListOffers",
        pb.ListOffersRequest(kind=kind, queue=queue),
        pb.ListOffersResponse,
        lambda reply: [reading.offer(each) for each in reply.offers],
    )


def policy(queue: str) -> Call[pb.GetBurstPolicyResponse, PolicyInfo]:
    """What may be rented."""
    return Call(
        BURST,
        "GetBurstPolicy",
        pb.GetBurstPolicyRequest(queue=queue),
        pb.GetBurstPolicyResponse,
        lambda reply: reading.policy(reply.policy),
    )


def policies() -> Call[pb.ListBurstPoliciesResponse, list[PolicyInfo]]:
    """All policies."""
    return Call(
        BURST,
        "ListBurstPolicies",
        pb.ListBurstPoliciesRequest(),
        pb.ListBurstPoliciesResponse,
        lambda reply: [reading.policy(each) for each in reply.policies],
    )


def set_policy(
    given: PolicyInfo, fields: Iterable[str]
) -> Call[pb.SetBurstPolicyResponse, PolicyInfo]:
    """Change what the paths of `fields` name, such as `budget.per_hour`."""
    return Call(
        BURST,
        "SetBurstPolicy",
        pb.SetBurstPolicyRequest(
            policy=reading.policy_to_proto(given), update_mask=FieldMask(paths=fields)
        ),
        pb.SetBurstPolicyResponse,
        lambda reply: reading.policy(reply.policy),
        repeatable=not given.etag,
    )


def request(
    wanted: pb.RequestCapacityRequest,
) -> Call[pb.RequestCapacityResponse, list[InstanceInfo]]:
    """Rent by hand; repeated with the same request_id it finds the same instances."""
    return Call(
        BURST,
        "RequestCapacity",
        wanted,
        pb.RequestCapacityResponse,
        lambda reply: [reading.instance(each) for each in reply.instances],
        repeatable=bool(wanted.request_id),
    )


def release(
    ids: Iterable[int], *, all: bool, now: bool
) -> Call[pb.ReleaseCapacityResponse, list[InstanceInfo]]:
    """Drain and end; repeatable, for releasing twice is releasing once."""
    return Call(
        BURST,
        "ReleaseCapacity",
        pb.ReleaseCapacityRequest(ids=ids, all=all, now=now),
        pb.ReleaseCapacityResponse,
        lambda reply: [reading.instance(each) for each in reply.instances],
    )


def instances(
    *, all: bool, page_size: int, token: str
) -> Call[pb.ListInstancesResponse, Page[InstanceInfo]]:
    """A page of instances, the latest first."""
    return Call(
        BURST,
        "ListInstances",
        pb.ListInstancesRequest(all=all, page_size=page_size, page_token=token),
        pb.ListInstancesResponse,
        lambda reply: Page(
            [reading.instance(each) for each in reply.instances], reply.next_page_token
        ),
    )


def spend(queue: str, *, from_at: float, step_s: float) -> Call[pb.GetSpendResponse, SpendHistory]:
    """Spending over time."""
    return Call(
        BURST,
        "GetSpend",
        pb.GetSpendRequest(queue=queue, from_at=from_at, step_s=step_s),
        pb.GetSpendResponse,
        reading.history,
    )


def explain(
    *, job_id: int, instance_id: int, most: int
) -> Call[pb.ExplainBurstResponse, BurstExplanation]:
    """Why something was rented or not."""
    return Call(
        BURST,
        "ExplainBurst",
        pb.ExplainBurstRequest(job_id=job_id, instance_id=instance_id, most=most),
        pb.ExplainBurstResponse,
        reading.explanation,
    )
