"""What happened in a simulation: the one source of its report, its files and its pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from atoll.core.model.ids import AttemptId, ClusterName, JobId, job_of
from atoll.sim.work import Work


@dataclass(slots=True)
class Stretch:
    """A time in which an attempt held capacity and ran. Times are seconds from the start."""

    job: JobId
    attempt: AttemptId
    cluster: ClusterName
    begun: float
    units: int
    """Held: device blocks, or milli-CPU in a fleet without devices."""
    ended: float | None = None
    how: str = ""
    """FINISHED, FAILED, TIME_LIMIT, NODE_DIED, GUARD, STOPPED or PREEMPTED."""
    useful_s: float = 0.0
    """Work that counts in the end: neither lost nor done before, nor a restart."""
    restart_s: float = 0.0
    """Spent on going on where the last checkpoint was."""

    @property
    def lost_s(self) -> float:
        """Ran, and has to be done again."""
        ran = (self.ended or self.begun) - self.begun
        return max(0.0, ran - self.useful_s - self.restart_s)


@dataclass(slots=True)
class JobRecord:
    """A job from its submit to its end."""

    id: JobId
    work: Work
    submitted: float
    tasks: int
    units: int
    """Wanted by its first alternative."""
    started: float | None = None
    ended: float | None = None
    state: str = "QUEUED"
    stretches: list[Stretch] = field(default_factory=list)
    evictions: int = 0
    rescales: int = 0

    @property
    def wait_s(self) -> float | None:
        """From the submit to the first start; None while it has not started."""
        return None if self.started is None else self.started - self.submitted

    @property
    def delay_s(self) -> float | None:
        """All time until the end in which it did not do its own work; None before its end."""
        return None if self.ended is None else self.ended - self.submitted - self.work.run_s


@dataclass(frozen=True, slots=True)
class Sample:
    """The fleet at one moment."""

    at: float
    capacity: int
    """Units of nodes that are up."""
    held: int
    fragmentation: float
    """Share of the free units that the workload's tasks cannot use, 0 to 1."""
    queued: int
    running: int


@dataclass(slots=True)
class Record:
    """Everything, in the order in which it happened."""

    unit: str = "device blocks"
    """Or `milli-CPU`."""
    jobs: dict[JobId, JobRecord] = field(default_factory=dict)
    running: dict[AttemptId, Stretch] = field(default_factory=dict)
    stretches: list[Stretch] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    capacity: list[tuple[float, int]] = field(default_factory=list)
    """(seconds, units) at each change of what is up."""
    held: int = 0
    ended: float = 0.0
    """When the simulation ended."""
    queued: int = 0

    def submit(self, job: JobId, work: Work, *, at: float, units: int) -> None:
        """A submit was acknowledged."""
        self.jobs[job] = JobRecord(job, work, at, work.spec.task_count, units)
        self.queued += 1

    def begin(self, attempt: AttemptId, cluster: ClusterName, *, at: float, units: int) -> Stretch:
        """A run really began."""
        job = self.jobs[job_of(attempt)]
        stretch = Stretch(job.id, attempt, cluster, at, units)
        self.running[attempt] = stretch
        self.stretches.append(stretch)
        job.stretches.append(stretch)
        if job.started is None:
            job.started = at
        self.held += units
        return stretch

    def stop(
        self,
        attempt: AttemptId,
        how: str,
        *,
        at: float,
        useful_s: float = 0.0,
        restart_s: float = 0.0,
    ) -> None:
        """A run really ended."""
        stretch = self.running.pop(attempt)
        stretch.ended, stretch.how = at, how
        stretch.useful_s, stretch.restart_s = useful_s, restart_s
        self.held -= stretch.units

    def move(self, job: JobId, before: str, after: str) -> None:
        """A job's state changed."""
        self.jobs[job].state = after
        self.queued += (after == "QUEUED") - (before == "QUEUED")

    def finish(self, job: JobId, *, at: float) -> None:
        """A job ended."""
        self.jobs[job].ended = at

    def evict(self, jobs: Sequence[JobId]) -> None:
        """Running jobs were told to stop for others."""
        for job in jobs:
            self.jobs[job].evictions += 1

    def set_capacity(self, at: float, units: int) -> None:
        """So much is up from now on."""
        if not self.capacity or self.capacity[-1][1] != units:
            self.capacity.append((at, units))

    def sample(self, at: float, fragmentation: float) -> None:
        """Remember how the fleet stands."""
        capacity = self.capacity[-1][1] if self.capacity else 0
        self.samples.append(
            Sample(at, capacity, self.held, fragmentation, self.queued, len(self.running))
        )
