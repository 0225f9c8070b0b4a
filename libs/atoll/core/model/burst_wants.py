"""What queued jobs want of rented capacity, and what the broker decided. Money: micro-dollars."""

from dataclasses import dataclass, field

from atoll.core.model.burst import NO_CLUSTER, InstanceId
from atoll.core.model.ids import ClusterName, JobId, QueueName


@dataclass(frozen=True, slots=True)
class TaskAsk:
    """What each of some equal tasks takes. Shares of devices count as whole ones."""

    count: int
    blocks: int = 0
    """100 per device."""
    cpu_milli: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """What a whole job takes, all of its tasks together: it has to fit one instance."""

    kind: str = ""
    """Device kind; empty: none is needed."""
    blocks: int = 0
    """100 per device."""
    cpu_milli: int = 0
    memory_bytes: int = 0
    tasks: tuple[TaskAsk, ...] = ()
    """Of a job that can do with several machines; none: it has to fit one."""


@dataclass(frozen=True, slots=True)
class Want:
    """A queued job that may burst, and what it can hope for without.

    As of some seconds ago: it may have started, be held, or be cancelled by the time it is read.
    """

    job: JobId
    queue: QueueName
    asks: tuple[Ask, ...]
    """Alternatives, in order of preference; none: it cannot run on what is rented."""
    submitted_at: float
    work_s: float
    """Expected time from start to end."""
    limit_s: float = 0.0
    """Time limit; 0: none."""
    deadline_at: float = 0.0
    local_p50_at: float = 0.0
    """Start without renting, with even chances; 0: nobody can tell."""
    local_p90_at: float = 0.0
    cluster: ClusterName = NO_CLUSTER
    """Where that would be."""
    max_cost: int = 0
    """0: no bound of its own."""
    overhead_s: float = 0.0
    """What an interruption costs: the restart, and the work since the last checkpoint."""
    preemptible: bool = True
    placed_on: InstanceId | None = None
    """A booting instance that is held for it."""
    as_of: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One place where a job could run, and what makes it better or worse than others."""

    cluster: ClusterName = NO_CLUSTER
    """Empty for what is not rented yet."""
    offer: str = ""
    """Empty for what is there."""
    start_at: float = 0.0
    finish_at: float = 0.0
    delay_cost: int = 0
    """The queue's value of the time until `finish_at`."""
    price: int = 0
    """What is paid for running there."""
    allowed: bool = True
    why: str = ""
    """A sentence, such as `on spot in 6 min at $3.10/h, allowed by queue policy`."""

    @property
    def total(self) -> int:
        """The least is the best."""
        return self.delay_cost + self.price


@dataclass(frozen=True, slots=True)
class BurstDecision:
    """What the broker decided, and why. Kept, so that `explain` can say it."""

    at: float
    action: str
    """`rent`, `keep`, `drain`, `retry`, `none`."""
    why: str
    """One sentence with its numbers."""
    kind: str = ""
    devices: int = 0
    offer: str = ""
    job: JobId | None = None
    """None: the forecast, or an instance."""
    queue: QueueName | None = None
    terms: tuple[tuple[str, float], ...] = ()
    instances: tuple[InstanceId, ...] = field(default=())
    id: int = 0
    """Given by the store."""
