"""Running work that may change its size, as a snapshot has it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from atoll.core.engine.deadlines.desk import SizeFacts
from atoll.core.engine.deadlines.pools import Pool
from atoll.core.engine.deadlines.terms import HOLD_PER_COST, useful
from atoll.core.model.ids import AttemptId
from atoll.core.model.plan import RunFacts, TaskPlacement
from atoll.core.model.spec import Elastic
from atoll.core.state.ledger import Holding
from atoll.core.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ElasticRun:
    """A running attempt of one task group whose tasks have the same number of whole devices."""

    holding: Holding
    run: RunFacts
    elastic: Elastic
    pool: Pool
    each: int
    """Devices of a task."""
    since: float
    """Wall time of its start, or of its last change of size."""
    done: float
    """Work done by then."""
    generation: int

    @property
    def tasks(self) -> tuple[TaskPlacement, ...]:
        """By rank."""
        return tuple(sorted(self.holding.tasks, key=lambda task: task.rank))

    @property
    def size(self) -> int:
        """Tasks."""
        return len(self.holding.tasks)

    @property
    def sizes(self) -> tuple[tuple[int, float], ...]:
        """(tasks, work per second) of the sizes that are faster than smaller ones."""
        return useful(self.elastic.throughput)

    def may_change(self, now: float) -> bool:
        """Whether its last change is long enough ago."""
        return now >= self.since + self.hold_s

    @property
    def hold_s(self) -> float:
        """From one change of size to the next, at least."""
        return HOLD_PER_COST * self.elastic.rescale_cost_s

    def rate(self, size: int) -> float:
        """Work per second with so many tasks; 0 below the smallest size."""
        return max((rate for tasks, rate in self.sizes if tasks <= size), default=0.0)

    def left(self, now: float) -> float:
        """Work that is left."""
        worked = max(0.0, now - self.since - self.elastic.rescale_cost_s)
        return max(0.0, self.elastic.work - self.done - worked * self.rate(self.size))

    def done_by(self, now: float) -> float:
        """Work that is done."""
        return self.elastic.work - self.left(now)

    def seconds(self, size: int, now: float) -> float:
        """Until it would be through with so many tasks from now on."""
        rate = self.rate(size)
        pause = self.elastic.rescale_cost_s if size != self.size else 0.0
        return pause + self.left(now) / rate if rate else float("inf")


def elastic_runs(
    snapshot: Snapshot, ready: Collection[AttemptId], sizes: Mapping[AttemptId, SizeFacts]
) -> Iterator[ElasticRun]:
    """Those of `ready` that may grow and shrink, in the order of their placement."""
    if not ready:
        return
    running = snapshot.running
    wanted = np.fromiter(ready, np.int64, len(ready))
    chosen = running.live & ~running.stopping & np.isin(running.runs.attempt, wanted)
    for slot in np.flatnonzero(chosen).tolist():
        holding = running.holdings[slot]
        if (found := _elastic_run(snapshot, holding, sizes.get(holding.attempt))) is not None:
            yield found


def _elastic_run(
    snapshot: Snapshot, holding: Holding, facts: SizeFacts | None
) -> ElasticRun | None:
    run = holding.run
    if run is None or run.terms.elastic is None:
        return None
    each = {len(task.devices) for task in holding.tasks}
    whole = all(grant.blocks == 100 for task in holding.tasks for grant in task.devices)
    groups = {task.group for task in holding.tasks}
    if len(each) != 1 or 0 in each or len(groups) != 1 or not whole:
        return None
    first = holding.tasks[0]
    row = snapshot.row_of.get(first.node)
    if row is None:
        return None
    model = snapshot.nodes.model[row, first.devices[0].index]
    number = int(snapshot.hardware.models.kind[model])
    kind = next((name for name, at in snapshot.kinds.items() if at == number), "")
    return ElasticRun(
        holding,
        run,
        run.terms.elastic,
        (holding.cluster, kind),
        each.pop(),
        since=facts.since if facts else run.started_at,
        done=facts.done if facts else 0.0,
        generation=facts.generation if facts else 0,
    )
