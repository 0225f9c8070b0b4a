"""Rules over rows that tests write by hand."""

from collections.abc import Callable

from atoll.adapters.memory.store_rows import MemoryDatabase, Rows
from atoll.core.model.ids import (
    DEFAULT_SHARD,
    AttemptId,
    ClusterName,
    Epoch,
    JobId,
    NodeId,
    attempt_id,
    job_of,
)
from atoll.core.model.job import Attempt
from atoll.core.model.messages import Decision, DecisionKind
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.ports.store.common import Allocation
from atoll.sim.service.rules import Rules
from atoll.sim.service.witness import Court, Story
from tests.adapters.store_builders import job

C = ClusterName("north")
EPOCH = Epoch(1, 1)


class StoppedClock:
    """A clock on which it is always zero."""

    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody waits here")


class Bench:
    """What is committed is checked first; `accused` names the invariant that did not hold."""

    def __init__(self) -> None:
        self.database = MemoryDatabase()
        self.court = Court(Story(StoppedClock(), 0.0), lambda: None)
        self.running: set[AttemptId] = set()
        self.rules = Rules(self.court, lambda _, attempt: attempt in self.running, lambda *_: None)

    def commit(self, write: Callable[[Rows], None]) -> None:
        rows = Rows(self.database.tables)
        write(rows)
        self.rules.check(rows)
        rows.apply()

    def place(self, number: int, grant: DeviceGrant = DeviceGrant(0, 100)) -> AttemptId:  # noqa: B008
        """A job whose one task holds a share of a device of node 1."""
        found = attempt_id(JobId(number), 1)

        def write(rows: Rows) -> None:
            rows.jobs.put(JobId(number), job(number))
            rows.attempts.put(found, attempt(found, grant))
            rows.allocations.put(found, held(found, grant))

        self.commit(write)
        return found

    @property
    def accused(self) -> str:
        return "" if self.court.first is None else self.court.first.invariant


def attempt(number: AttemptId, *grants: DeviceGrant) -> Attempt:
    """An attempt of one task for each grant."""
    tasks = tuple(
        TaskPlacement(0, rank, NodeId(1), "n1", cpu_milli=1, memory_bytes=1, devices=(grant,))
        for rank, grant in enumerate(grants)
    )
    return Attempt(
        number, C, DEFAULT_SHARD, EPOCH, number=1, tasks=tasks, created_at=0.0, bind_by=1.0
    )


def held(number: AttemptId, *grants: DeviceGrant) -> tuple[Allocation, ...]:
    """The rows of such an attempt."""
    rows: list[Allocation] = []
    for rank, grant in enumerate(grants):
        rows.append(Allocation(number, rank, NodeId(1), 1, 1))
        rows.append(Allocation(number, rank, NodeId(1), device=grant))
    return tuple(rows)


def decision(number: int, attempt: AttemptId) -> Decision:
    """A START."""
    assert job_of(attempt)
    return Decision(C, number, EPOCH, kind=DecisionKind.START, attempt=attempt)
