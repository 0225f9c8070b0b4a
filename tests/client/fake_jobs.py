# ruff: noqa: N802 - the methods have the names of the proto
"""The part of the fake SubmissionService that is about jobs."""

from collections import defaultdict
from collections.abc import Iterator

import grpc

from atoll.api.common.v1 import common_pb2 as common
from atoll.api.submission.v1 import submission_pb2 as pb
from atoll.api.submission.v1 import submission_pb2_grpc
from atoll.core.model.errors import ErrorCode, FailedPrecondition, NotFound, Unavailable
from tests.client.world import ENDED, Context, World, refuse


class FakeJobs(submission_pb2_grpc.SubmissionServiceServicer):
    """Jobs of a World."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _begin(self, method: str, context: Context) -> None:
        self.world.calls[method] += 1
        self.world.metadata = {k: v for k, v in context.invocation_metadata() if isinstance(v, str)}
        if self.world.failures[method]:
            refuse(context, self.world.failures[method].pop(0))

    def _lose(self, method: str, context: Context) -> None:
        if self.world.lost_replies[method]:
            self.world.lost_replies[method] -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "connection reset")

    def _job(self, job_id: int, context: Context) -> pb.Job:
        if job_id not in self.world.jobs:
            refuse(context, NotFound(f"no job {job_id}", code=ErrorCode.JOB_NOT_FOUND))
        return self.world.jobs[job_id]

    def SubmitJobs(self, request: pb.SubmitJobsRequest, context: Context) -> pb.SubmitJobsResponse:
        self._begin("SubmitJobs", context)
        known = request.request_id in self.world.requests
        if not known:
            ids = [self.world.add(s, n) for s in request.jobs for n in range(s.array or 1)]
            self.world.requests[request.request_id] = ids
            if self.world.plays:
                for job_id in ids:
                    self.world.plays(self.world, job_id)
        self._lose("SubmitJobs", context)
        ids = self.world.requests[request.request_id]
        told = [] if known else self.world.deadlines
        return pb.SubmitJobsResponse(job_ids=ids, replayed=known, deadlines=told)

    def GetJob(self, request: pb.GetJobRequest, context: Context) -> pb.GetJobResponse:
        self._begin("GetJob", context)
        answer = pb.GetJobResponse(job=self._job(request.job_id, context))
        self.world.shown.append(common.JobState.Name(answer.job.state).removeprefix("JOB_STATE_"))
        return answer

    def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        self._begin("ListJobs", context)
        chosen = [
            job
            for job in sorted(self.world.jobs.values(), key=lambda job: -job.id)
            if (not request.states or job.state in request.states)
            and (not request.job_ids or job.id in request.job_ids)
            and all(job.spec.labels.get(k) == v for k, v in request.labels.items())
            and request.queue in ("", job.spec.queue)
        ]
        start, size = int(request.page.page_token or 0), request.page.page_size or 100
        more = str(start + size) if start + size < len(chosen) else ""
        return pb.ListJobsResponse(jobs=chosen[start : start + size], next_page_token=more)

    def CancelJobs(self, request: pb.CancelJobsRequest, context: Context) -> pb.CancelJobsResponse:
        self._begin("CancelJobs", context)
        for job_id in request.job_ids:
            job = self._job(job_id, context)
            if job.state == common.JOB_STATE_RUNNING:
                job.cancelling = True
            elif job.state not in ENDED:
                self.world.move(job_id, "CANCELLED", reason="USER_CANCEL")
        return pb.CancelJobsResponse(jobs=[self.world.jobs[job_id] for job_id in request.job_ids])

    def HoldJob(self, request: pb.HoldJobRequest, context: Context) -> pb.HoldJobResponse:
        self._begin("HoldJob", context)
        job = self._job(request.job_id, context)
        if job.state != common.JOB_STATE_QUEUED:
            told = f"job {job.id} is not QUEUED"
            refuse(context, FailedPrecondition(told, code=ErrorCode.WRONG_STATE))
        self.world.move(job.id, "HELD")
        return pb.HoldJobResponse(job=job)

    def ReleaseJob(self, request: pb.ReleaseJobRequest, context: Context) -> pb.ReleaseJobResponse:
        self._begin("ReleaseJob", context)
        self.world.move(self._job(request.job_id, context).id, "QUEUED", "RELEASED")
        return pb.ReleaseJobResponse(job=self.world.jobs[request.job_id])

    def SetJobPriority(
        self, request: pb.SetJobPriorityRequest, context: Context
    ) -> pb.SetJobPriorityResponse:
        self._begin("SetJobPriority", context)
        job = self._job(request.job_id, context)
        job.priority = request.priority
        return pb.SetJobPriorityResponse(job=job)

    def WatchJobs(
        self, request: pb.WatchJobsRequest, context: Context
    ) -> Iterator[pb.WatchJobsResponse]:
        self._begin("WatchJobs", context)
        if request.cursor in self.world.expired:
            told = "the cursor is too old"
            refuse(context, FailedPrecondition(told, code=ErrorCode.CURSOR_EXPIRED))
        world = self.world
        at = int(request.cursor) if request.cursor else len(world.history)
        world.watches += 1
        left = world.watch_breaks_after.pop(0) if world.watch_breaks_after else None
        yield pb.WatchJobsResponse(cursor=str(at))
        while context.is_active():
            with world.changed:
                if len(world.history) == at:
                    world.changed.wait(0.05)
                fresh = world.history[at : None if left is None else at + left]
                at += len(fresh)
            chosen = [e for e in fresh if not request.job_ids or e.job_id in request.job_ids]
            if fresh:
                yield pb.WatchJobsResponse(events=chosen, cursor=str(at))
            if left is not None and not (left := left - len(fresh)):
                refuse(context, Unavailable("reset", code=ErrorCode.UNAVAILABLE))

    def StreamLogs(
        self, request: pb.StreamLogsRequest, context: Context
    ) -> Iterator[pb.StreamLogsResponse]:
        self._begin("StreamLogs", context)
        job = self._job(request.job_id, context)
        if not job.attempts:
            told = f"job {job.id} has not been placed yet"
            refuse(context, FailedPrecondition(told, code=ErrorCode.ATTEMPT_NOT_FOUND))
        budget = self.world.drop_after_bytes.pop(0) if self.world.drop_after_bytes else None
        for rank, data, offset in self._pieces(request, job, context):
            if budget is None or len(data) <= budget:
                yield pb.StreamLogsResponse(rank=rank, data=data, offset=offset)
                budget = None if budget is None else budget - len(data)
                continue
            yield pb.StreamLogsResponse(rank=rank, data=data[:budget], offset=offset)
            refuse(context, Unavailable("agent gone", code=ErrorCode.AGENT_UNREACHABLE))

    def _pieces(
        self, request: pb.StreamLogsRequest, job: pb.Job, context: Context
    ) -> Iterator[tuple[int, bytes, int]]:
        sent, offsets = 0, defaultdict[int, int](int)
        while context.is_active():
            with self.world.changed:
                pieces = self.world.output[job.id][sent:]
                over = job.state in ENDED or not request.follow
            for rank, data in pieces:
                sent, start = sent + 1, offsets[rank]
                offsets[rank] += len(data)
                known = max(0, request.offset - start)
                if request.rank in (-1, rank) and known < len(data):
                    yield rank, data[known:], start + known
            if over and sent == len(self.world.output[job.id]):
                return
            with self.world.changed:
                self.world.changed.wait(0.02)
