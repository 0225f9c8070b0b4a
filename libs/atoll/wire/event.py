"""A job's history as watches show it."""

from typing import Final

from atoll.api.events.v1 import events_pb2
from atoll.core.model.ids import AttemptId, ClusterName, JobId, QueueName, attempt_id, attempt_name
from atoll.core.model.lifecycle import JobEvent
from atoll.core.model.messages import Event
from atoll.wire.enums import WireError
from atoll.wire.job import state_from_proto, state_to_proto
from atoll.wire.reason import code_from_text, code_to_text

SUBMITTED: Final = "SUBMITTED"
CHANGED: Final = "CHANGED"


def event_to_proto(event: Event) -> events_pb2.JobEvent:
    """An entry. One without a move is the submit, or, when it has a message, some change."""
    return events_pb2.JobEvent(
        job_id=event.job,
        queue=event.queue,
        event=_name(event),
        state=state_to_proto(event.state),
        at=event.at,
        attempt="" if event.attempt is None else attempt_name(event.attempt),
        cluster=event.cluster or "",
        reason=code_to_text(event.reason),
        message=event.message,
        principal=event.principal,
    )


def event_from_proto(proto: events_pb2.JobEvent) -> Event:
    """An entry; raises WireError for a move or state that this version does not know."""
    return Event(
        job=JobId(proto.job_id),
        queue=QueueName(proto.queue),
        event=_move(proto.event),
        state=state_from_proto(proto.state),
        at=proto.at,
        attempt=_attempt(proto.attempt) if proto.attempt else None,
        cluster=ClusterName(proto.cluster) if proto.cluster else None,
        reason=code_from_text(proto.reason),
        message=proto.message,
        principal=proto.principal,
    )


def _name(event: Event) -> str:
    if event.event is not None:
        return event.event.value
    return CHANGED if event.message else SUBMITTED


def _move(text: str) -> JobEvent | None:
    if text in (SUBMITTED, CHANGED):
        return None
    if text not in JobEvent.__members__:
        raise WireError(f"event: unknown move {text!r}")
    return JobEvent(text)


def _attempt(name: str) -> AttemptId:
    job, _, number = name.partition(".")
    try:
        return attempt_id(JobId(int(job)), int(number))
    except ValueError as error:
        raise WireError(f"attempt: {name!r} is no name like 1042.1") from error
