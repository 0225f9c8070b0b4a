# ruff: noqa: N802 - the methods have the names of the proto
"""BurstService over a World: policies and instances are kept, what else it says is given."""

import grpc

from atoll.api.burst.v1 import burst_pb2 as pb
from atoll.api.burst.v1 import burst_pb2_grpc
from atoll.core.model.errors import ErrorCode, NotFound
from tests.client.world import Context, World, refuse


class FakeBurst(burst_pb2_grpc.BurstServiceServicer):
    """Rents nothing but rows."""

    def __init__(self, world: World) -> None:
        self.world = world

    def GetBurstStatus(
        self, request: pb.GetBurstStatusRequest, context: Context
    ) -> pb.GetBurstStatusResponse:
        self._begin("GetBurstStatus", context)
        return self.world.burst.status

    def GetForecast(
        self, request: pb.GetForecastRequest, context: Context
    ) -> pb.GetForecastResponse:
        self._begin("GetForecast", context)
        self.world.burst.asked.append(request)
        wanted = [s for s in self.world.burst.series if request.kind in ("", s.kind)]
        return pb.GetForecastResponse(series=wanted)

    def ListOffers(self, request: pb.ListOffersRequest, context: Context) -> pb.ListOffersResponse:
        self._begin("ListOffers", context)
        self.world.burst.asked.append(request)
        wanted = [o for o in self.world.burst.offers if request.kind in ("", o.kind)]
        return pb.ListOffersResponse(offers=wanted)

    def GetBurstPolicy(
        self, request: pb.GetBurstPolicyRequest, context: Context
    ) -> pb.GetBurstPolicyResponse:
        self._begin("GetBurstPolicy", context)
        if request.queue not in self.world.burst.policies:
            told = f"no policy of queue {request.queue}"
            refuse(context, NotFound(told, code=ErrorCode.QUEUE_NOT_FOUND))
        return pb.GetBurstPolicyResponse(policy=self.world.burst.policies[request.queue])

    def ListBurstPolicies(
        self, request: pb.ListBurstPoliciesRequest, context: Context
    ) -> pb.ListBurstPoliciesResponse:
        self._begin("ListBurstPolicies", context)
        rows = [policy for _, policy in sorted(self.world.burst.policies.items())]
        return pb.ListBurstPoliciesResponse(policies=rows)

    def SetBurstPolicy(
        self, request: pb.SetBurstPolicyRequest, context: Context
    ) -> pb.SetBurstPolicyResponse:
        self._begin("SetBurstPolicy", context)
        self.world.burst.asked.append(request)
        policy = self.world.burst.policies.setdefault(
            request.policy.queue, pb.BurstPolicy(queue=request.policy.queue)
        )
        request.update_mask.MergeMessage(
            request.policy, policy, replace_message_field=True, replace_repeated_field=True
        )
        policy.etag += 1
        return pb.SetBurstPolicyResponse(policy=policy)

    def RequestCapacity(
        self, request: pb.RequestCapacityRequest, context: Context
    ) -> pb.RequestCapacityResponse:
        self._begin("RequestCapacity", context)
        burst = self.world.burst
        burst.asked.append(request)
        if request.request_id not in burst.requests:
            burst.requests[request.request_id] = [burst.rent(request) for _ in range(request.count)]
        rows = [burst.instances[number] for number in burst.requests[request.request_id]]
        self._end("RequestCapacity", context)
        return pb.RequestCapacityResponse(instances=rows)

    def ReleaseCapacity(
        self, request: pb.ReleaseCapacityRequest, context: Context
    ) -> pb.ReleaseCapacityResponse:
        self._begin("ReleaseCapacity", context)
        self.world.burst.asked.append(request)
        numbers = self.world.burst.instances if request.all else request.ids
        rows = [self.world.burst.instances[number] for number in numbers]
        for row in rows:
            row.state, row.cause = pb.INSTANCE_STATE_DRAINING, "BY_HAND"
        return pb.ReleaseCapacityResponse(instances=rows)

    def ListInstances(
        self, request: pb.ListInstancesRequest, context: Context
    ) -> pb.ListInstancesResponse:
        self._begin("ListInstances", context)
        rows = [
            row
            for _, row in sorted(self.world.burst.instances.items(), reverse=True)
            if request.all or row.state != pb.INSTANCE_STATE_TERMINATED
        ]
        first, size = int(request.page_token or 0), request.page_size or 100
        last = first + size
        return pb.ListInstancesResponse(
            instances=rows[first:last], next_page_token=str(last) if last < len(rows) else ""
        )

    def GetSpend(self, request: pb.GetSpendRequest, context: Context) -> pb.GetSpendResponse:
        self._begin("GetSpend", context)
        self.world.burst.asked.append(request)
        return self.world.burst.spend

    def ExplainBurst(
        self, request: pb.ExplainBurstRequest, context: Context
    ) -> pb.ExplainBurstResponse:
        self._begin("ExplainBurst", context)
        self.world.burst.asked.append(request)
        return self.world.burst.explanation

    def _begin(self, method: str, context: Context) -> None:
        self.world.calls[method] += 1
        if self.world.failures[method]:
            refuse(context, self.world.failures[method].pop(0))

    def _end(self, method: str, context: Context) -> None:
        if self.world.lost_replies[method]:
            self.world.lost_replies[method] -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "connection reset")
