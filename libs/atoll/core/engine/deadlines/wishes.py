"""From a request of the scheduler to a job of the book, or why it cannot be one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from atoll.core.engine.deadlines.pools import whole_seconds
from atoll.core.engine.deadlines.terms import DeadlineJob, useful
from atoll.core.model.ids import QueueName
from atoll.core.model.plan import GangRequest
from atoll.core.model.resources import ANY_KIND, TaskShape


@dataclass(frozen=True, slots=True)
class Ask:
    """A job that is to be promised its deadline. Times are unix seconds."""

    queue: QueueName
    request: GangRequest
    deadline_at: float
    begin_at: float = 0.0
    waits: bool = False
    """For other jobs."""


def cannot_promise(ask: Ask) -> str:
    """Why no book can take such a job; empty: one can."""
    request = ask.request
    if ask.waits:
        return "it waits for other jobs"
    if len(request.groups) != 1:
        return "it has several task groups"
    if not any(_takes_whole(shape) for shape in request.groups[0].shapes):
        return "only whole devices of one named kind are promised, on any node of a cluster"
    if request.topology is not None and request.topology.required:
        return "it needs all its tasks in one domain"
    if request.terms.elastic is None and request.terms.time_limit_s <= 0:
        return "nobody knows how long it runs: give time_limit, or elastic"
    return ""


def book_jobs(ask: Ask, number: int) -> Iterator[tuple[str, DeadlineJob]]:
    """(device kind, the job) for each alternative that can be promised, the preferred first."""
    (group,) = ask.request.groups
    for shape in group.shapes:
        device = shape.device
        if device is not None and _takes_whole(shape):
            yield device.kind, book_job(ask, number, each=device.count, tasks=group.count)


def book_job(ask: Ask, number: int, *, each: int, tasks: int) -> DeadlineJob:
    """The job as the book sees it; `each`: devices of one task."""
    terms = ask.request.terms
    times = (whole_seconds(ask.deadline_at, up=False), whole_seconds(ask.begin_at, up=True))
    if terms.elastic is None:
        size = (tasks * each, 1.0)
        return DeadlineJob(number, times[0], (size,), terms.time_limit_s, begin=times[1])
    sizes = useful(tuple((size * each, rate) for size, rate in terms.elastic.throughput))
    cost = math.ceil(terms.elastic.rescale_cost_s)
    return DeadlineJob(number, times[0], sizes, terms.elastic.work, cost, begin=times[1])


def _takes_whole(shape: TaskShape) -> bool:
    device = shape.device
    return (
        device is not None
        and device.whole
        and device.kind != ANY_KIND
        and not shape.labels
        and not shape.labels_not
    )
