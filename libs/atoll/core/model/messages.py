"""What services and agents tell each other: decisions, reports, events."""

import enum
from dataclasses import dataclass

from atoll.core.model.ids import AttemptId, ClusterName, Epoch, JobId, NodeId, QueueName
from atoll.core.model.lifecycle import AttemptEvent, JobEvent, JobState, StopCause
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode


class DecisionKind(enum.StrEnum):
    """What an agent is told."""

    START = "START"
    STOP = "STOP"
    RESIZE = "RESIZE"
    """A running attempt gets another set of tasks; `tasks` is all of it."""
    VOID = "VOID"
    """A number whose decision no longer stands; the agent only moves its prefix."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One numbered decision for one cluster."""

    cluster: ClusterName
    number: int
    """Dense per cluster, from 1."""
    epoch: Epoch
    kind: DecisionKind
    attempt: AttemptId
    tasks: tuple[TaskPlacement, ...] = ()
    """START and RESIZE: all tasks that are to run."""
    generation: int = 0
    """RESIZE: the number of this change of size; a later one makes it void."""
    cause: StopCause = StopCause.NONE
    """STOP only."""
    bind_by: float = 0.0
    trace: str = ""
    """W3C traceparent; carried so that the agent's spans join the job's trace."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent says of one attempt."""

    cluster: ClusterName
    number: int
    """Dense per agent instance, from 1."""
    attempt: AttemptId
    event: AttemptEvent
    at: float
    """Wall time on the agent's machine, for people."""
    reason: ReasonCode | None = None
    message: str = ""
    exit_code: int | None = None
    suspects: tuple[NodeId, ...] = ()
    """REJECTED: the nodes that could not honour it."""
    inventory_number: int = 0
    """REJECTED: of the inventory that the agent saw."""
    generation: int = 0
    """RESIZED: which change of size was carried out."""
    ranks: tuple[int, ...] = ()
    """RESIZED: what runs now. Tasks that were wanted and are not among them could not begin."""


class ChangeKind(enum.IntEnum):
    """What a row of `changes` is about."""

    JOBS = 1
    ATTEMPTS = 2
    NODES = 3
    CLUSTERS = 4
    QUEUES = 5
    DECISIONS = 6
    BOOKINGS = 7
    """Occurrences of bookings, by number."""
    INSTANCES = 8
    """Rented machines, by number; without a number: what may be rented, or policies."""


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a job's history, as watches show it."""

    job: JobId
    queue: QueueName
    event: JobEvent | None
    """None: the job was submitted, or changed without a move."""
    state: JobState
    at: float
    attempt: AttemptId | None = None
    cluster: ClusterName | None = None
    reason: ReasonCode | None = None
    message: str = ""
    principal: str = ""
