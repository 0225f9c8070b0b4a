"""Bookings as the cycle sees them: capacity that belongs to somebody for a window of time.

Everything that is booked is a rectangle: shares of nodes x a time. A floating booking has
its rectangles too, from the moment that it is accepted, so that what was accepted is known to
fit; until `bind_before` its start they may move to other nodes.
"""

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import inf
from typing import Final, NewType

from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName
from atoll.core.model.resources import DeviceGrant

JOB_LABEL: Final = "atoll.job"
OPEN_ENDED_S: Final = 86_400.0
"""Preemptible work without a time limit is taken to run so long, where a booking is still far off:
when that comes, it is stopped in time. What may not be stopped is taken to run for ever."""
STOP_MARGIN_S: Final = 5.0
"""Whoever is to have ended by a time is told its grace and this much before it."""
KEPT_AFTER_S: Final = 3600.0
"""For so long after the end it is seen to that owners' runs have left: nobody may have been there
to tell them at the time."""

OccurrenceId = NewType("OccurrenceId", int)
"""Number of an occurrence in the store, never reused."""


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What of one node is booked."""

    node: NodeId
    node_name: str
    cpu_milli: int = 0
    memory_bytes: int = 0
    devices: tuple[DeviceGrant, ...] = ()
    whole: bool = False
    """All of the node, whatever it has; the amounts do not count then."""


@dataclass(frozen=True, slots=True)
class Owners:
    """Whose jobs a booking is for: any that matches one member. Nobody at all: maintenance."""

    queues: tuple[QueueName, ...] = ()
    """These queues and everything below them."""
    users: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    """Labels of jobs, each of which is enough."""

    @property
    def nobody(self) -> bool:
        """True: nothing may run there at all."""
        return not (self.queues or self.users or self.labels)

    @property
    def marks(self) -> tuple[str, ...]:
        """What jobs are known by beside their queue: `user:alice`, `label:team=nlp`; sorted."""
        users = (user_mark(user) for user in self.users)
        return tuple(sorted([*users, *(label_mark(k, v) for k, v in self.labels)]))


def user_mark(user: str) -> str:
    """The mark of a user's jobs."""
    return f"user:{user}"


def label_mark(key: str, value: str) -> str:
    """The mark of jobs with a label."""
    return f"label:{key}={value}"


def promise_mark(queue: QueueName) -> str:
    """The mark of a queue's jobs whose deadline is guaranteed; no user and no label gives it."""
    return f"promised:{queue}"


def marks_of(user: str, labels: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Marks of a job by its user and labels; sorted."""
    return tuple(sorted([user_mark(user), *(label_mark(key, value) for key, value in labels)]))


def job_owner(job: JobId) -> tuple[str, str]:
    """A label that one job alone has: it need not be given, every job has its own."""
    return JOB_LABEL, str(job)


def with_own(marks: tuple[str, ...], job: JobId) -> tuple[str, ...]:
    """All marks of a job; its own comes last."""
    return (*marks, label_mark(*job_owner(job)))


def jobs_of(labels: Iterable[tuple[str, str]]) -> list[JobId]:
    """Jobs that are named by the labels that they alone have."""
    return [JobId(int(value)) for key, value in labels if key == JOB_LABEL and value.isdecimal()]


class OnEnd(enum.StrEnum):
    """What happens to the owner's runs when the window ends."""

    STOP = "stop"
    """They have ended by then: told to stop their grace earlier, and queued again."""
    GRACE = "grace"
    """They may go on for `end_grace_s`, unless somebody else has booked their place."""
    CONTINUE = "continue"
    """They go on as ordinary jobs, unless somebody else has booked their place."""


@dataclass(frozen=True, slots=True)
class Window:
    """One occurrence of a booking in one cluster. Times are unix seconds."""

    id: OccurrenceId
    booking: str
    """Name of the reservation, as jobs ask for it and people read it."""
    start: float
    end: float
    cluster: ClusterName
    shares: tuple[NodeShare, ...]
    owners: Owners = Owners()
    lend: bool = True
    """What no owner uses may run preemptible jobs of others."""
    on_end: OnEnd = OnEnd.STOP
    end_grace_s: float = 0.0
    charge: tuple[QueueName, ...] = ()
    """Queues that are charged for all of it while it lasts, used or not; the first one pays."""
    priority: int = 0
    open: bool = False
    """The loop has started it: its owners' jobs may run there."""

    @property
    def lends(self) -> bool:
        """Whether preemptible jobs of others may run on what no owner uses."""
        return self.lend and not self.owners.nobody

    @property
    def runs_until(self) -> float:
        """When owners' runs have to have ended; infinity where they may go on."""
        if self.on_end is OnEnd.CONTINUE:
            return inf
        return self.end + (self.end_grace_s if self.on_end is OnEnd.GRACE else 0.0)

    @property
    def kept_until(self) -> float:
        """From then on it means nothing to anybody."""
        return self.end if self.on_end is OnEnd.CONTINUE else self.runs_until + KEPT_AFTER_S


def owned_by(owners: Owners, queue: QueueName, marks: Collection[str]) -> bool:
    """Whether jobs of a queue with these marks are the owners'."""
    if any(queue == name or queue.startswith(f"{name}.") for name in owners.queues):
        return True
    return any(mark in marks for mark in owners.marks)


def held_for_s(time_limit_s: float, *, preemptible: bool) -> float:
    """How long a job that starts now is taken to hold its place."""
    if time_limit_s:
        return time_limit_s
    return OPEN_ENDED_S if preemptible else float("inf")
