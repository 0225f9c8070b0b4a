"""Requests of the API as the use cases take them."""

import hashlib
from dataclasses import replace

from atoll.api.common.v1 import common_pb2
from atoll.api.submission.v1 import submission_pb2
from atoll.core.model.actor import Actor
from atoll.core.model.ids import JobId
from atoll.core.model.resources import BLOCKS_PER_DEVICE, TaskShape
from atoll.core.model.spec import JobSpec
from atoll.ports.store.submission import JobFilter
from atoll.submission.usecases.drafts import Draft
from atoll.submission.usecases.submit import Submission
from atoll.wire.job import state_from_proto
from atoll.wire.spec import dependency_names, spec_from_proto


def submission_of(request: submission_pb2.SubmitJobsRequest, *, trace: str) -> Submission:
    """A call. What tells a repeated one from another: all of it but its id and `validate_only`."""
    key = request.request_id.lower()
    request.ClearField("request_id")
    request.ClearField("validate_only")
    body = request.SerializeToString(deterministic=True)
    return Submission(
        drafts=tuple(_draft(spec) for spec in request.jobs),
        key=key,
        body_hash=hashlib.sha256(body).digest(),
        trace=trace,
    )


def filter_of(request: submission_pb2.ListJobsRequest, actor: Actor) -> JobFilter:
    """Which jobs a list is to show; raises WireError for states that this version lacks."""
    return JobFilter(
        tenant=actor.tenant,
        queue=request.queue,
        states=frozenset(state_from_proto(state) for state in request.states),
        labels=tuple(sorted(request.labels.items())),
        ids=tuple(JobId(job) for job in request.job_ids),
        array_id=JobId(request.array_id) if request.array_id else None,
        cluster=request.cluster,
    )


def _draft(proto: common_pb2.JobSpec) -> Draft:
    spec = spec_from_proto(proto)
    return Draft(
        _canonical(spec) if _has_slices(spec) else spec,
        after=dependency_names(proto) if proto.depends_on else (),
        array=proto.array,
        size_bytes=proto.ByteSize(),
    )


def _has_slices(spec: JobSpec) -> bool:
    return any(
        shape.device is not None and shape.device.profile
        for group in spec.groups
        for shape in group.shapes
    )


def _canonical(spec: JobSpec) -> JobSpec:
    """Slices have no blocks; the model writes that in one way, so that equal requests are equal."""
    groups = tuple(
        replace(group, shapes=tuple(_canonical_shape(shape) for shape in group.shapes))
        for group in spec.groups
    )
    return replace(spec, groups=groups)


def _canonical_shape(shape: TaskShape) -> TaskShape:
    device = shape.device
    if device is None or not device.profile or device.blocks:
        return shape
    return replace(shape, device=replace(device, blocks=BLOCKS_PER_DEVICE))
