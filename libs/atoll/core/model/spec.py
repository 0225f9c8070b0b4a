"""What a user submits, after parsing and validation."""

import enum
from dataclasses import dataclass
from typing import Final

from atoll.core.model.ids import JobId
from atoll.core.model.resources import TaskShape


class OnLost(enum.StrEnum):
    """What happens to a run when its cluster falls silent."""

    HOLD = "hold"
    REQUEUE = "requeue"


NODE_LEVEL: Final = "node"
"""The level below all others: every node is a domain of its own."""


@dataclass(frozen=True, slots=True)
class Spread:
    """At most `most` tasks of a group in one domain of a level."""

    level: str
    most: int


@dataclass(frozen=True, slots=True)
class AntiAffinity:
    """Jobs of one queue that give the same name never share a domain of the level."""

    name: str
    level: str = NODE_LEVEL


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """Identical tasks of a job. All groups of a job start together or not at all."""

    name: str
    count: int
    """Tasks wanted (`num_nodes`, `gang.max`)."""
    min_count: int
    """The job may start with this many (`gang.min`); equal to `count` when rigid."""
    shapes: tuple[TaskShape, ...]
    """Alternatives in order of preference (`any_of`); one is chosen for the whole group."""
    run: str
    setup: str = ""
    envs: tuple[tuple[str, str], ...] = ()
    spread: Spread | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """All tasks of the job inside one domain of this level."""

    level: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How a run is told to save its work: the signal, then `grace_s` until SIGTERM."""

    signal: str = "SIGUSR1"
    grace_s: float = 0.0
    interval_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Elastic:
    """How fast the job runs at each size, so that its share may grow and shrink while it runs."""

    throughput: tuple[tuple[int, float], ...]
    """(tasks, work per second), by rising size; between two sizes the lower one counts."""
    work: float
    """In the unit of the throughput; the job is done when so much is."""
    rescale_cost_s: float = 30.0
    """For so long nothing is done after each change of size."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job. Strings are validated, amounts are integers in base units."""

    name: str
    queue: str
    groups: tuple[TaskGroup, ...]
    priority: int = 0
    priority_class: str = "normal"
    labels: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    """Environment that no API ever shows again."""
    output: str = ""
    """Path pattern for captured output (`%j` job, `%t` rank); empty: the agent's own folder."""
    ports: tuple[int, ...] = ()
    time_limit_s: float = 0.0
    """0: unlimited."""
    deadline_at: float = 0.0
    """Unix seconds by which it should have ended; 0: none."""
    best_effort: bool = False
    """A deadline that cannot be met is no reason to refuse the job."""
    elastic: Elastic | None = None
    preempts: bool = True
    """False: it stops nobody, whatever its priority. Its priority class may say so for it."""
    preemptible: bool = True
    """False: it is never stopped for others."""
    restart_cost_s: float = 0.0
    """From a new start until it goes on where its last checkpoint was."""
    begin_at: float = 0.0
    """Unix seconds before which the job is not considered; 0: at once."""
    depends_on: tuple[JobId, ...] = ()
    """Jobs that must have succeeded first."""
    array_id: JobId | None = None
    array_index: int = 0
    topology: Topology | None = None
    anti_affinity: AntiAffinity | None = None
    checkpoint: Checkpoint | None = None
    on_lost: OnLost = OnLost.HOLD
    retries: int = 0
    grace_s: float = 10.0
    """From SIGTERM to SIGKILL."""
    reservation: str = ""
    """Booking in whose windows alone it runs; empty: wherever it may."""
    burst: bool = True
    """False: never on rented capacity, whatever its queue may."""
    burst_max_cost: int = 0
    """Micro-dollars that renting for it may cost; 0: no bound of its own."""

    @property
    def task_count(self) -> int:
        """Tasks wanted over all groups."""
        return sum(group.count for group in self.groups)
