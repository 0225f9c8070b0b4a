# ruff: noqa: N802 - the methods have the names of the proto
"""The services over a World, on one port of loopback."""

from concurrent.futures import ThreadPoolExecutor

import grpc

from atoll.api.burst.v1 import burst_pb2_grpc
from atoll.api.placement.v1 import placement_pb2, placement_pb2_grpc
from atoll.api.submission.v1 import submission_pb2 as pb
from atoll.api.submission.v1 import submission_pb2_grpc
from atoll.core.model.errors import ErrorCode, NotFound, Unavailable
from tests.client.fake_burst import FakeBurst
from tests.client.fake_jobs import FakeJobs
from tests.client.world import Context, World, refuse


class FakeSubmission(FakeJobs):
    """SubmissionService over a World."""

    def CreateQueue(
        self, request: pb.CreateQueueRequest, context: Context
    ) -> pb.CreateQueueResponse:
        self._begin("CreateQueue", context)
        self.world.queues[request.queue.name] = request.queue
        return pb.CreateQueueResponse(queue=request.queue, notes=self.world.notes)

    def _queue(self, name: str, context: Context) -> pb.Queue:
        if name not in self.world.queues:
            refuse(context, NotFound(f"no queue {name}", code=ErrorCode.QUEUE_NOT_FOUND))
        return self.world.queues[name]

    def GetQueue(self, request: pb.GetQueueRequest, context: Context) -> pb.GetQueueResponse:
        self._begin("GetQueue", context)
        return pb.GetQueueResponse(queue=self._queue(request.name, context))

    def ListQueues(self, request: pb.ListQueuesRequest, context: Context) -> pb.ListQueuesResponse:
        self._begin("ListQueues", context)
        return pb.ListQueuesResponse(queues=[q for _, q in sorted(self.world.queues.items())])

    def UpdateQueue(
        self, request: pb.UpdateQueueRequest, context: Context
    ) -> pb.UpdateQueueResponse:
        self._begin("UpdateQueue", context)
        queue = self._queue(request.queue.name, context)
        for name in request.update_mask:
            set_field(queue, request.queue, name)
        return pb.UpdateQueueResponse(queue=queue)

    def DeleteQueue(
        self, request: pb.DeleteQueueRequest, context: Context
    ) -> pb.DeleteQueueResponse:
        self._begin("DeleteQueue", context)
        del self.world.queues[self._queue(request.name, context).name]
        return pb.DeleteQueueResponse()

    def ListClusters(
        self, request: pb.ListClustersRequest, context: Context
    ) -> pb.ListClustersResponse:
        self._begin("ListClusters", context)
        return pb.ListClustersResponse(clusters=self.world.clusters)

    def ListNodes(self, request: pb.ListNodesRequest, context: Context) -> pb.ListNodesResponse:
        self._begin("ListNodes", context)
        nodes = [n for n in self.world.nodes if request.cluster in ("", n.cluster)]
        return pb.ListNodesResponse(nodes=nodes)

    def Cordon(self, request: pb.CordonRequest, context: Context) -> pb.CordonResponse:
        self._begin("Cordon", context)
        self.world.cordons.append((request.cluster, request.node, request.reason))
        return pb.CordonResponse()

    def Uncordon(self, request: pb.UncordonRequest, context: Context) -> pb.UncordonResponse:
        self._begin("Uncordon", context)
        self.world.cordons = [
            c for c in self.world.cordons if c[:2] != (request.cluster, request.node)
        ]
        return pb.UncordonResponse()


def set_field(queue: pb.Queue, wanted: pb.Queue, path: str) -> None:
    """Take over one field of an update mask."""
    name, _, kind = path.partition(".")
    if not kind:
        setattr(queue, name, getattr(wanted, name))
        return
    blocks = getattr(queue, name)
    blocks.pop(kind, None)
    if given := getattr(wanted, name).get(kind):
        blocks[kind] = given


class FakePlacement(placement_pb2_grpc.PlacementServiceServicer):
    """PlacementService over a World."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _lead(self, method: str, context: Context) -> None:
        self.world.calls[method] += 1
        if self.world.failures[method]:
            refuse(context, self.world.failures[method].pop(0))
        if self.world.leader:
            error = Unavailable(
                "this replica does not lead",
                code=ErrorCode.NOT_LEADER,
                metadata={"leader": self.world.leader},
            )
            refuse(context, error)

    def ExplainJob(
        self, request: placement_pb2.ExplainJobRequest, context: Context
    ) -> placement_pb2.ExplainJobResponse:
        self._lead("ExplainJob", context)
        if request.job_id not in self.world.explanations:
            told = f"no job {request.job_id}"
            refuse(context, NotFound(told, code=ErrorCode.JOB_NOT_FOUND))
        return self.world.explanations[request.job_id]

    def AdmitDeadlines(
        self, request: placement_pb2.AdmitDeadlinesRequest, context: Context
    ) -> placement_pb2.AdmitDeadlinesResponse:
        self._lead("AdmitDeadlines", context)
        self.world.asked.append(request)
        return placement_pb2.AdmitDeadlinesResponse(answers=self.world.deadlines)

    def PlanJob(
        self, request: placement_pb2.PlanJobRequest, context: Context
    ) -> placement_pb2.PlanJobResponse:
        self._lead("PlanJob", context)
        self.world.planned.append(request.spec)
        return self.world.plan

    def GetShares(
        self, request: placement_pb2.GetSharesRequest, context: Context
    ) -> placement_pb2.GetSharesResponse:
        self._lead("GetShares", context)
        shares = [s for s in self.world.shares if s.queue.startswith(request.queue)]
        return placement_pb2.GetSharesResponse(shares=shares, as_of=1.0)

    def GetPriority(
        self, request: placement_pb2.GetPriorityRequest, context: Context
    ) -> placement_pb2.GetPriorityResponse:
        self._lead("GetPriority", context)
        if request.job_id not in self.world.priorities:
            told = f"no job {request.job_id}"
            refuse(context, NotFound(told, code=ErrorCode.JOB_NOT_FOUND))
        return self.world.priorities[request.job_id]

    def ListWaits(
        self, request: placement_pb2.ListWaitsRequest, context: Context
    ) -> placement_pb2.ListWaitsResponse:
        self._lead("ListWaits", context)
        waits = [w for w in self.world.waits if w.job_id in request.job_ids]
        return placement_pb2.ListWaitsResponse(waits=waits)

    def GetStatus(
        self, request: placement_pb2.GetStatusRequest, context: Context
    ) -> placement_pb2.GetStatusResponse:
        self.world.calls["GetStatus"] += 1
        leads = not self.world.leader
        return placement_pb2.GetStatusResponse(
            leader=leads, leader_address=self.world.leader, queued=3, placement_ms=[1, 2, 3]
        )

    def ForgetCluster(
        self, request: placement_pb2.ForgetClusterRequest, context: Context
    ) -> placement_pb2.ForgetClusterResponse:
        self._lead("ForgetCluster", context)
        self.world.forgotten.append(request.name)
        return placement_pb2.ForgetClusterResponse(attempts_lost=2, decisions_voided=1)


class Server:
    """All services on one port of loopback."""

    def __init__(self, world: World, credentials: grpc.ServerCredentials | None = None) -> None:
        self.world = world
        self._server = grpc.server(ThreadPoolExecutor(16))
        submission_pb2_grpc.add_SubmissionServiceServicer_to_server(
            FakeSubmission(world), self._server
        )
        placement_pb2_grpc.add_PlacementServiceServicer_to_server(
            FakePlacement(world), self._server
        )
        burst_pb2_grpc.add_BurstServiceServicer_to_server(FakeBurst(world), self._server)
        port = (
            self._server.add_secure_port("127.0.0.1:0", credentials)
            if credentials
            else self._server.add_insecure_port("127.0.0.1:0")
        )
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def stop(self) -> None:
        """End at once; streams break."""
        self._server.stop(0).wait()
