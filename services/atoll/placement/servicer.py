"""PlacementService over gRPC: wire -> use case -> wire."""

from collections.abc import Iterable
from typing import Any

import grpc

from atoll.api.common.v1 import common_pb2
from atoll.api.placement.v1 import placement_pb2, placement_pb2_grpc
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.model.errors import ErrorCode, Unavailable
from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.core.model.plan import request_of
from atoll.core.model.priority import DEFAULT_CLASSES, PriorityClass, by_name
from atoll.core.policies.registry import order_name
from atoll.placement import answers, telemetry
from atoll.placement.loops import Candidate
from atoll.placement.usecases.explain import explain_job
from atoll.placement.usecases.leader import Leader
from atoll.placement.usecases.questions import (
    checked_spec,
    get_priority,
    get_shares,
    list_waits,
    plan_job,
)
from atoll.runtime.rpc.caller import current
from atoll.wire.deadline import verdict_to_proto
from atoll.wire.spec import spec_from_proto

Context = grpc.aio.ServicerContext[Any, Any]


class PlacementServicer(placement_pb2_grpc.PlacementServiceServicer):
    """Answers on the leader; a standby names it."""

    def __init__(
        self,
        candidate: Candidate,
        *,
        classes: Iterable[PriorityClass] = DEFAULT_CLASSES,
    ) -> None:
        """`classes`: the priority classes, for specs that are not submitted."""
        self._candidate = candidate
        self._classes = by_name(classes)

    async def ExplainJob(  # noqa: N802 - the proto's name
        self, request: placement_pb2.ExplainJobRequest, context: Context
    ) -> placement_pb2.ExplainJobResponse:
        """Why a job waits, or where it is."""
        leader = await self._leader()
        return answers.explained(await explain_job(leader, JobId(request.job_id)))

    async def PlanJob(  # noqa: N802
        self, request: placement_pb2.PlanJobRequest, context: Context
    ) -> placement_pb2.PlanJobResponse:
        """What would become of a job; nothing is submitted."""
        leader = await self._leader()
        spec = checked_spec(spec_from_proto(request.spec), self._classes)
        caller = current.get()
        found = await plan_job(leader, spec, caller.tenant, user=caller.principal)
        return answers.planned(found)

    async def GetShares(  # noqa: N802
        self, request: placement_pb2.GetSharesRequest, context: Context
    ) -> placement_pb2.GetSharesResponse:
        """What queues hold, deserve and borrow."""
        return answers.shared_out(await get_shares(await self._leader(), request.queue))

    async def GetPriority(  # noqa: N802
        self, request: placement_pb2.GetPriorityRequest, context: Context
    ) -> placement_pb2.GetPriorityResponse:
        """What the order of the queue makes of one job."""
        leader = await self._leader()
        found = await get_priority(leader, JobId(request.job_id))
        return answers.prioritised(found, order_name(leader.policies.order))

    async def ListWaits(  # noqa: N802
        self, request: placement_pb2.ListWaitsRequest, context: Context
    ) -> placement_pb2.ListWaitsResponse:
        """Why queued jobs wait, in short."""
        waits = list_waits(await self._leader(), [JobId(job) for job in request.job_ids])
        return placement_pb2.ListWaitsResponse(waits=[answers.wait_to_proto(w) for w in waits])

    async def AdmitDeadlines(  # noqa: N802
        self, request: placement_pb2.AdmitDeadlinesRequest, context: Context
    ) -> placement_pb2.AdmitDeadlinesResponse:
        """Whether jobs would meet their deadlines."""
        leader = await self._leader()
        if request.shard != leader.shard:
            raise Unavailable(f"this replica leads shard {leader.shard}", code=ErrorCode.NOT_LEADER)
        verdicts = await leader.promises.answer(
            leader.memory.world,
            [_ask(job) for job in request.jobs],
            now=leader.clock.now(),
            keep=not request.validate_only,
        )
        return placement_pb2.AdmitDeadlinesResponse(
            answers=[verdict_to_proto(verdict) for verdict in verdicts]
        )

    async def GetStatus(  # noqa: N802
        self, request: placement_pb2.GetStatusRequest, context: Context
    ) -> placement_pb2.GetStatusResponse:
        """What this replica is and has done."""
        leader = self._candidate.leader
        status = placement_pb2.GetStatusResponse(
            leader=leader is not None, leader_address=await self._candidate.leader_address()
        )
        if leader is not None:
            _fill(status, leader)
        return status

    async def ForgetCluster(  # noqa: N802
        self, request: placement_pb2.ForgetClusterRequest, context: Context
    ) -> placement_pb2.ForgetClusterResponse:
        """Give a cluster up for good."""
        await self._leader()
        forgotten = await self._candidate.forget(
            ClusterName(request.name), fenced=request.i_have_fenced_it
        )
        return placement_pb2.ForgetClusterResponse(
            attempts_lost=len(forgotten.outcomes), decisions_voided=forgotten.decisions_voided
        )

    async def _leader(self) -> Leader:
        if self._candidate.leader is not None:
            return self._candidate.leader
        address = await self._candidate.leader_address()
        where = f"; {address} does" if address else " and nobody is known to"
        raise Unavailable(
            f"this replica does not lead{where}",
            code=ErrorCode.NOT_LEADER,
            metadata={"leader": address},
        )


def _ask(proto: common_pb2.JobSpec) -> Ask:
    spec = spec_from_proto(proto)
    return Ask(
        QueueName(spec.queue),
        request_of(spec),
        spec.deadline_at,
        begin_at=spec.begin_at,
        waits=bool(proto.depends_on),
    )


def _fill(status: placement_pb2.GetStatusResponse, leader: Leader) -> None:
    status.epoch = str(leader.fence.epoch)
    status.queued = leader.memory.world.pending_count
    status.live_attempts = len(leader.memory.live)
    status.cycles = leader.counters.cycles
    status.placements = leader.counters.placements
    status.rollbacks = leader.counters.rollbacks
    status.placement_ms.extend(telemetry.percentiles_ms())
    covered = leader.foresight.record.coverage()
    status.eta_starts = covered.count
    if covered.count:
        status.eta_within.extend(covered.within)
        status.eta_error_s = covered.error_s
