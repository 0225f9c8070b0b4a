"""Identifiers, and the few rules that tie them together."""

from dataclasses import dataclass
from typing import Final, NewType

JobId = NewType("JobId", int)
"""Dense-ish positive number from the store; what people type (`atoll logs 1042`)."""

AttemptId = NewType("AttemptId", int)
"""`job << 16 | number`: unique for ever, and it names its job without a look-up."""

NodeId = NewType("NodeId", int)
"""Number of a node in the store, unique over all clusters, never reused."""

ClusterName = NewType("ClusterName", str)
QueueName = NewType("QueueName", str)
"""Path in the queue tree, levels joined by dots: `org.team.project`."""

Tenant = NewType("Tenant", str)
ShardId = NewType("ShardId", int)

DEFAULT_SHARD: Final = ShardId(0)
ATTEMPT_BITS: Final = 16
MAX_ATTEMPTS: Final = (1 << ATTEMPT_BITS) - 1


def attempt_id(job: JobId, number: int) -> AttemptId:
    """The id of a job's attempt; `number` counts from 1 and is at most MAX_ATTEMPTS."""
    if not 1 <= number <= MAX_ATTEMPTS:
        raise ValueError(f"attempt number {number} is outside 1..{MAX_ATTEMPTS}")
    return AttemptId(job << ATTEMPT_BITS | number)


def job_of(attempt: AttemptId) -> JobId:
    """The job that an attempt belongs to."""
    return JobId(attempt >> ATTEMPT_BITS)


def attempt_number(attempt: AttemptId) -> int:
    """Which try of its job this is, from 1."""
    return attempt & MAX_ATTEMPTS


def attempt_name(attempt: AttemptId) -> str:
    """How people and file systems see it: `1042.1`."""
    return f"{job_of(attempt)}.{attempt_number(attempt)}"


@dataclass(frozen=True, slots=True, order=True)
class Epoch:
    """A leader's monotonic number: (etcd generation, create revision), compared in that order."""

    generation: int
    revision: int

    def __str__(self) -> str:
        return f"{self.generation}.{self.revision}"


NO_EPOCH: Final = Epoch(0, 0)
