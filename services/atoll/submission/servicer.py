"""SubmissionService: wire -> use case -> wire, and nothing else."""
# ruff: noqa: N802 - the names are the proto's

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc

from atoll.api.submission.v1 import submission_pb2 as api
from atoll.api.submission.v1 import submission_pb2_grpc as api_grpc
from atoll.core.model.actor import Actor
from atoll.core.model.errors import DomainError
from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.runtime import logs, tracing
from atoll.runtime.rpc.caller import current
from atoll.submission import telemetry
from atoll.submission.intake import filter_of, submission_of
from atoll.submission.usecases.change_jobs import JobChanger
from atoll.submission.usecases.clusters import Clusters
from atoll.submission.usecases.jobs import JobReader, JobView
from atoll.submission.usecases.logs import Logs, LogsWanted
from atoll.submission.usecases.queues import Queues, QueueView
from atoll.submission.usecases.submit import Submission, Submitter
from atoll.submission.usecases.watch import Watched, Watcher
from atoll.submission.usecases.write_jobs import Submitted
from atoll.wire.cluster import cluster_node_to_proto, cluster_to_proto
from atoll.wire.deadline import verdict_to_proto
from atoll.wire.event import event_to_proto
from atoll.wire.job import job_to_proto
from atoll.wire.queue import queue_from_proto, queue_to_proto

log = logs.logger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class UseCases:
    """What the service can do."""

    submitter: Submitter
    reader: JobReader
    changer: JobChanger
    watcher: Watcher
    logs: Logs
    queues: Queues
    clusters: Clusters


class SubmissionServicer(api_grpc.SubmissionServiceServicer):
    """Serves the API; see its proto for what each call means."""

    def __init__(self, use: UseCases) -> None:
        self._use = use

    async def SubmitJobs(
        self, request: api.SubmitJobsRequest, context: Context
    ) -> api.SubmitJobsResponse:
        """Write jobs, or check them only."""
        check_only = request.validate_only
        submission = submission_of(request, trace=_trace())
        if check_only:
            told = await self._use.submitter.check(_actor(), submission)
            return api.SubmitJobsResponse(deadlines=[verdict_to_proto(each) for each in told])
        done = await self._submit(submission)
        log.debug("submitted", job_ids=list(done.jobs), replayed=done.replayed)
        return api.SubmitJobsResponse(
            job_ids=done.jobs,
            replayed=done.replayed,
            deadlines=[verdict_to_proto(each) for each in done.verdicts],
        )

    async def GetJob(self, request: api.GetJobRequest, context: Context) -> api.GetJobResponse:
        """One job."""
        view = await self._use.reader.get(_actor(), JobId(request.job_id))
        return api.GetJobResponse(job=_job(view))

    async def ListJobs(
        self, request: api.ListJobsRequest, context: Context
    ) -> api.ListJobsResponse:
        """A page of jobs."""
        page = await self._use.reader.page(
            filter_of(request, _actor()),
            size=request.page.page_size,
            token=request.page.page_token,
        )
        jobs = [_job(view) for view in page.jobs]
        return api.ListJobsResponse(jobs=jobs, next_page_token=page.next_token)

    async def CancelJobs(
        self, request: api.CancelJobsRequest, context: Context
    ) -> api.CancelJobsResponse:
        """End jobs, or have them stopped."""
        wanted = [JobId(job) for job in request.job_ids]
        views = await self._use.changer.cancel(_actor(), wanted)
        return api.CancelJobsResponse(jobs=[_job(view) for view in views])

    async def HoldJob(self, request: api.HoldJobRequest, context: Context) -> api.HoldJobResponse:
        """Keep a job from being placed."""
        view = await self._use.changer.hold(_actor(), JobId(request.job_id), etag=request.etag)
        return api.HoldJobResponse(job=_job(view))

    async def ReleaseJob(
        self, request: api.ReleaseJobRequest, context: Context
    ) -> api.ReleaseJobResponse:
        """Let a job be placed again."""
        view = await self._use.changer.release(_actor(), JobId(request.job_id), etag=request.etag)
        return api.ReleaseJobResponse(job=_job(view))

    async def SetJobPriority(
        self, request: api.SetJobPriorityRequest, context: Context
    ) -> api.SetJobPriorityResponse:
        """Change a job's priority."""
        view = await self._use.changer.set_priority(
            _actor(), JobId(request.job_id), priority=request.priority, etag=request.etag
        )
        return api.SetJobPriorityResponse(job=_job(view))

    async def WatchJobs(
        self, request: api.WatchJobsRequest, context: Context
    ) -> AsyncIterator[api.WatchJobsResponse]:
        """Stream events."""
        watched = Watched(request.queue, tuple(JobId(job) for job in request.job_ids))
        pages = self._use.watcher.watch(_actor(), watched, cursor=request.cursor)
        async for page in pages:
            events = [event_to_proto(event) for event in page.events]
            yield api.WatchJobsResponse(events=events, cursor=page.cursor.text)

    async def StreamLogs(
        self, request: api.StreamLogsRequest, context: Context
    ) -> AsyncIterator[api.StreamLogsResponse]:
        """Stream output."""
        wanted = LogsWanted(
            job=JobId(request.job_id),
            rank=request.rank,
            follow=request.follow,
            attempt=request.attempt,
            offset=request.offset,
            tail_lines=request.tail_lines,
        )
        async for chunk in self._use.logs.stream(_actor(), wanted):
            yield api.StreamLogsResponse(rank=chunk.rank, data=chunk.data, offset=chunk.offset)

    async def CreateQueue(
        self, request: api.CreateQueueRequest, context: Context
    ) -> api.CreateQueueResponse:
        """A new queue."""
        actor = _actor()
        made = await self._use.queues.create(actor, queue_from_proto(request.queue, actor.tenant))
        return api.CreateQueueResponse(queue=_queue(made), notes=made.notes)

    async def GetQueue(
        self, request: api.GetQueueRequest, context: Context
    ) -> api.GetQueueResponse:
        """One queue."""
        found = await self._use.queues.get(_actor(), QueueName(request.name))
        return api.GetQueueResponse(queue=_queue(found))

    async def ListQueues(
        self, request: api.ListQueuesRequest, context: Context
    ) -> api.ListQueuesResponse:
        """A page of queues."""
        page = await self._use.queues.page(
            _actor(), size=request.page.page_size, token=request.page.page_token
        )
        queues = [_queue(view) for view in page.queues]
        return api.ListQueuesResponse(queues=queues, next_page_token=page.next_token)

    async def UpdateQueue(
        self, request: api.UpdateQueueRequest, context: Context
    ) -> api.UpdateQueueResponse:
        """Change a queue."""
        actor = _actor()
        changed = await self._use.queues.update(
            actor,
            queue_from_proto(request.queue, actor.tenant),
            fields=request.update_mask,
            etag=request.queue.etag,
        )
        return api.UpdateQueueResponse(queue=_queue(changed), notes=changed.notes)

    async def DeleteQueue(
        self, request: api.DeleteQueueRequest, context: Context
    ) -> api.DeleteQueueResponse:
        """Delete a queue that holds no live job."""
        await self._use.queues.delete(_actor(), QueueName(request.name), etag=request.etag)
        return api.DeleteQueueResponse()

    async def ListClusters(
        self, request: api.ListClustersRequest, context: Context
    ) -> api.ListClustersResponse:
        """All clusters."""
        found = await self._use.clusters.all(retired=request.include_retired)
        return api.ListClustersResponse(clusters=[cluster_to_proto(totals) for totals in found])

    async def ListNodes(
        self, request: api.ListNodesRequest, context: Context
    ) -> api.ListNodesResponse:
        """A page of nodes."""
        page = await self._use.clusters.nodes(
            request.cluster, size=request.page.page_size, token=request.page.page_token
        )
        nodes = [cluster_node_to_proto(view.node, view.allocations) for view in page.nodes]
        return api.ListNodesResponse(nodes=nodes, next_page_token=page.next_token)

    async def Cordon(self, request: api.CordonRequest, context: Context) -> api.CordonResponse:
        """Keep new work from a cluster or a node."""
        await self._set_cordon(request.cluster, request.node, on=True, reason=request.reason)
        return api.CordonResponse()

    async def Uncordon(
        self, request: api.UncordonRequest, context: Context
    ) -> api.UncordonResponse:
        """Take a cordon back."""
        await self._set_cordon(request.cluster, request.node, on=False, reason="")
        return api.UncordonResponse()

    async def _submit(self, submission: Submission) -> Submitted:
        begun = telemetry.CLOCK.now()
        try:
            done = await self._use.submitter.submit(_actor(), submission)
        except DomainError as refusal:
            telemetry.REFUSED.labels(refusal.code.value).inc()
            raise
        if done.replayed:
            telemetry.REPLAYED.inc()
        else:
            telemetry.SUBMITTED.inc(len(done.jobs))
            telemetry.begin_traces(submission.trace, done.jobs, since=begun)
        return done

    async def _set_cordon(self, cluster: str, node: str, *, on: bool, reason: str) -> None:
        name = ClusterName(cluster)
        await self._use.clusters.set_cordon(name, node, on=on, reason=reason)
        principal = current.get().principal
        log.info("cordon changed", cluster=cluster, node=node, on=on, reason=reason, by=principal)


def _actor() -> Actor:
    caller = current.get()
    return Actor(caller.principal, caller.tenant)


def _trace() -> str:
    return tracing.traceparent() or current.get().traceparent


def _job(view: JobView) -> api.Job:
    return job_to_proto(view.job, view.attempt)


def _queue(view: QueueView) -> api.Queue:
    return queue_to_proto(view.queue, view.counts)
