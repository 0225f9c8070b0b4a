"""Which promises cannot be kept any more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from atoll.core.engine.deadlines.desk import Desk, SizeFacts
from atoll.core.engine.deadlines.pools import Pool, Pools, whole_seconds
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.model.deadline import Chance
from atoll.core.model.ids import AttemptId, JobId
from atoll.core.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Broken:
    """A promised deadline that will be missed."""

    job: JobId
    attempt: AttemptId | None
    """None: it queues."""
    pool: Pool | None
    """Where it runs."""
    kinds: frozenset[str]
    """Device kinds that it could have."""
    deadline_at: float
    earliest_at: float
    """When it could be through now; 0: nobody knows."""


def broken(
    snapshot: Snapshot,
    standing: Sequence[tuple[JobId, Ask]],
    sizes: Mapping[AttemptId, SizeFacts],
    *,
    now: float,
    slack: int,
) -> tuple[Broken, ...]:
    """Promises that are missed by more than `slack` seconds, of running and queued jobs."""
    desk = Desk(snapshot, whole_seconds(now, up=True), sizes, slack=slack)
    found: list[Broken] = []
    for held in desk.late:
        run, attempt = held.holding.run, held.holding.attempt
        if run is not None:
            kinds = frozenset({held.pool[1]})
            found.append(Broken(run.job, attempt, held.pool, kinds, run.deadline_at, 0.0))
    for job, ask in sorted(standing, key=lambda each: each[1].deadline_at):
        latest = ask.deadline_at + slack
        told = desk.answer(replace(ask, deadline_at=latest))
        # What only quota is against may be done in time all the same.
        in_time = 0 < told.earliest_at <= latest
        if told.chance is not Chance.GUARANTEED and not in_time:
            kinds = _kinds(ask)
            found.append(Broken(job, None, None, kinds, ask.deadline_at, told.earliest_at))
    return tuple(found)


def capacities(snapshot: Snapshot, *, now: float) -> dict[Pool, int]:
    """Devices that could be handed out whole, by pool."""
    return Pools(snapshot, whole_seconds(now, up=True)).capacities()


def known(snapshot: Snapshot, *, now: float) -> dict[Pool, int]:
    """The same if every node that is known took work."""
    pools = Pools(snapshot, whole_seconds(now, up=True), everywhere=True)
    return pools.capacities()


def _kinds(ask: Ask) -> frozenset[str]:
    shapes = (shape for group in ask.request.groups for shape in group.shapes)
    return frozenset(shape.device.kind for shape in shapes if shape.device)
