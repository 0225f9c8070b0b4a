"""BurstService over gRPC: wire -> use case -> wire."""

# Methods have the API's names.
# ruff: noqa: N802

from dataclasses import dataclass
from typing import Any

import grpc

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.api.burst.v1 import burst_pb2_grpc
from atoll.burst import answers, intake, telemetry
from atoll.burst.usecases.by_hand import ByHand
from atoll.burst.usecases.explain import Explainer
from atoll.burst.usecases.look import Looker
from atoll.burst.usecases.policy_book import PolicyBook
from atoll.burst.usecases.series import forecasts
from atoll.core.model.burst import InstanceId
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.core.model.ids import JobId
from atoll.ports.store.burst import BurstStore
from atoll.runtime.rpc.caller import current
from atoll.wire.burst import instance_to_proto, offer_to_proto, policy_to_proto, queue_from_proto

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class UseCases:
    """What the servicer calls."""

    store: BurstStore
    looker: Looker
    policies: PolicyBook
    by_hand: ByHand
    explainer: Explainer


class BurstServicer(burst_pb2_grpc.BurstServiceServicer):
    """Every replica answers everything; the leader carries out what is written."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use = use_cases

    async def GetBurstStatus(
        self, request: pb.GetBurstStatusRequest, context: Context
    ) -> pb.GetBurstStatusResponse:
        """Where it stands."""
        return answers.standing(await self._use.looker.standing())

    async def GetForecast(
        self, request: pb.GetForecastRequest, context: Context
    ) -> pb.GetForecastResponse:
        """The last forecasts."""
        found = await forecasts(
            self._use.store,
            kind=request.kind,
            queue=request.queue,
            horizon_s=request.horizon_s,
            past_s=request.past_s,
        )
        return answers.forecasts(found)

    async def ListOffers(
        self, request: pb.ListOffersRequest, context: Context
    ) -> pb.ListOffersResponse:
        """What can be rented."""
        queue = queue_from_proto(request.queue)
        found = await self._use.looker.offers(kind=request.kind, queue=queue)
        return pb.ListOffersResponse(offers=[offer_to_proto(each) for each in found])

    async def GetBurstPolicy(
        self, request: pb.GetBurstPolicyRequest, context: Context
    ) -> pb.GetBurstPolicyResponse:
        """One policy."""
        found = await self._use.policies.get(queue_from_proto(request.queue))
        return pb.GetBurstPolicyResponse(policy=policy_to_proto(found))

    async def ListBurstPolicies(
        self, request: pb.ListBurstPoliciesRequest, context: Context
    ) -> pb.ListBurstPoliciesResponse:
        """All policies."""
        found = await self._use.policies.all()
        return pb.ListBurstPoliciesResponse(policies=[policy_to_proto(each) for each in found])

    async def SetBurstPolicy(
        self, request: pb.SetBurstPolicyRequest, context: Context
    ) -> pb.SetBurstPolicyResponse:
        """Change a policy."""
        made = await self._use.policies.set(*intake.policy_of(request))
        return pb.SetBurstPolicyResponse(policy=policy_to_proto(made))

    async def RequestCapacity(
        self, request: pb.RequestCapacityRequest, context: Context
    ) -> pb.RequestCapacityResponse:
        """Rent by hand."""
        asked, principal = intake.request_of(request), current.get().principal
        with telemetry.asking():
            rows = await self._use.by_hand.request(asked, principal=principal)
        return pb.RequestCapacityResponse(instances=[instance_to_proto(row) for row in rows])

    async def ReleaseCapacity(
        self, request: pb.ReleaseCapacityRequest, context: Context
    ) -> pb.ReleaseCapacityResponse:
        """End instances."""
        ids = [InstanceId(number) for number in request.ids]
        rows = await self._use.by_hand.release(ids, every=request.all, now=request.now)
        return pb.ReleaseCapacityResponse(instances=[instance_to_proto(row) for row in rows])

    async def ListInstances(
        self, request: pb.ListInstancesRequest, context: Context
    ) -> pb.ListInstancesResponse:
        """A page of instances."""
        found = await self._use.looker.instances(
            ended=request.all, size=request.page_size, token=request.page_token
        )
        return answers.page(found)

    async def GetSpend(self, request: pb.GetSpendRequest, context: Context) -> pb.GetSpendResponse:
        """What was spent."""
        found = await self._use.looker.spend(
            queue_from_proto(request.queue), from_at=request.from_at, step_s=request.step_s
        )
        return answers.spend_over_time(found)

    async def ExplainBurst(
        self, request: pb.ExplainBurstRequest, context: Context
    ) -> pb.ExplainBurstResponse:
        """Why."""
        explainer = self._use.explainer
        if request.job_id and request.instance_id:
            raise InvalidInput((FieldViolation("instance_id", "give a job or an instance"),))
        if request.job_id:
            return answers.explanation(await explainer.job(JobId(request.job_id)))
        if request.instance_id:
            number = InstanceId(request.instance_id)
            return answers.explanation(await explainer.instance(number))
        return answers.explanation(await explainer.last(request.most))
