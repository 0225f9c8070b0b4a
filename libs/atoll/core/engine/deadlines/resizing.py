"""Which running jobs grow or shrink now: by the plans of the books, then onto what is spare.

Jobs shrink by their highest ranks. They grow on nodes that they are on
already, then on the fullest ones, so that few nodes are broken into.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.deadlines.borrowing import borrowers
from atoll.core.engine.deadlines.desk import Desk, SizeFacts, is_asked
from atoll.core.engine.deadlines.elastic import elastic_runs
from atoll.core.engine.deadlines.pools import WHOLE, Held, whole_seconds
from atoll.core.engine.deadlines.quota import QuotaLeft
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.model.ids import AttemptId, NodeId
from atoll.core.model.plan import Resize, TaskPlacement
from atoll.core.model.resources import BLOCKS_PER_DEVICE, DeviceGrant
from atoll.core.policies.interfaces import Objective
from atoll.core.state.columns import MODE_BLOCKS, STATUS_OK
from atoll.core.state.snapshot import Snapshot


def resizes(
    snapshot: Snapshot,
    standing: Iterable[Ask],
    sizes: Mapping[AttemptId, SizeFacts],
    *,
    now: float,
    ready: Collection[AttemptId] = (),
    asked: Container[str] = (),
    objective: Objective = Objective.SPEED,
) -> tuple[Resize, ...]:
    """Changes of size that are due at `now` (unix seconds), the shrinking ones first.

    `standing`: queued jobs that were promised their deadline. `sizes`: of attempts that
    have changed theirs before; others have it since they were placed. `ready`: attempts that
    run; only those among them grow that were promised nothing. `asked`: device kinds that
    others wait for, of which nothing is lent.
    """
    desk = Desk(snapshot, whole_seconds(now, up=True), sizes)
    desk.keep(standing)
    room, quota = _Room(snapshot), QuotaLeft(snapshot)
    made: list[Resize] = []
    for held, devices in sorted(desk.changes(asked), key=lambda due: due[1] - due[0].devices):
        facts = sizes.get(held.holding.attempt)
        if _allowed(held, devices, quota):
            made += _resize(held, devices, room, generation=1 + (facts.generation if facts else 0))
    runs = (run for run in elastic_runs(snapshot, ready, sizes) if not run.run.guaranteed)
    lendable = [run for run in runs if not is_asked(run.pool[1], asked)]
    for run, size in borrowers(lendable, desk.spare, now=now, objective=objective):
        held = Held(run.pool, run.size * run.each, run.holding)
        if _allowed(held, size * run.each, quota):
            made += _resize(held, size * run.each, room, generation=1 + run.generation)
    return tuple(made)


def _allowed(held: Held, devices: int, quota: QuotaLeft) -> bool:
    """Whether the limits of its queue let it grow."""
    more = devices - held.devices
    return more <= 0 or quota.fits_limits(held.holding.queue, held.pool[1], more)


def _resize(held: Held, devices: int, room: "_Room", *, generation: int) -> Iterator[Resize]:
    tasks = held.holding.tasks
    each = max(1, held.devices // len(tasks))
    wanted = devices // each
    add: tuple[TaskPlacement, ...] = ()
    drop: tuple[int, ...] = ()
    if wanted < len(tasks):
        drop = tuple(sorted(task.rank for task in tasks)[wanted:])
    else:
        add = room.place(held, wanted - len(tasks), each=each)
    # Growth is all or nothing: the plan counts with the size that it chose.
    if drop or (add and len(add) == wanted - len(tasks)):
        holding = held.holding
        yield Resize(holding.attempt, holding.cluster, generation, add=add, drop=drop)


class _Room:
    """What is free on the nodes of a snapshot, less what was given to growing jobs."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        nodes, models = snapshot.nodes, snapshot.hardware.models
        whole = (nodes.blocks_free == WHOLE) & (models.mode[nodes.model] & MODE_BLOCKS != 0)
        whole &= nodes.slices == 0
        self._free: NDArray[np.bool_] = whole & (nodes.status == STATUS_OK)[:, None]
        self._cpu, self._memory = nodes.cpu_free.copy(), nodes.memory_free.copy()

    def place(self, held: Held, count: int, *, each: int) -> tuple[TaskPlacement, ...]:
        """More tasks like the job's own, as many as there is room for up to `count`."""
        own = held.holding.tasks
        usable = self._usable(held)
        rank = max(task.rank for task in own) + 1
        placed: list[TaskPlacement] = []
        while len(placed) < count:
            row = self._best_row(own, usable, each=each)
            if row is None:
                break
            placed.append(self._take(row, own[0], usable[row], rank=rank + len(placed), each=each))
            usable &= self._free
        return tuple(placed)

    def _usable(self, held: Held) -> NDArray[np.bool_]:
        snapshot, (cluster, kind) = self._snapshot, held.pool
        nodes, models = snapshot.nodes, snapshot.hardware.models
        number = next(i for i, view in enumerate(snapshot.clusters) if view.name == cluster)
        mine = models.kind[nodes.model] == snapshot.kinds[kind]
        usable: NDArray[np.bool_] = self._free & mine & (nodes.cluster == number)[:, None]
        return usable

    def _best_row(
        self, own: tuple[TaskPlacement, ...], usable: NDArray[np.bool_], *, each: int
    ) -> int | None:
        free = usable.sum(axis=1)
        task = own[0]
        fits = (free >= each) & (self._cpu >= task.cpu_milli) & (self._memory >= task.memory_bytes)
        rows = np.flatnonzero(fits)
        if not rows.size:
            return None
        beside = np.isin(self._snapshot.nodes.id[rows], [task.node for task in own])
        return int(rows[np.lexsort((rows, free[rows], ~beside))[0]])

    def _take(
        self, row: int, like: TaskPlacement, usable: NDArray[np.bool_], *, rank: int, each: int
    ) -> TaskPlacement:
        devices = np.flatnonzero(usable)[:each]
        self._free[row, devices] = False
        self._cpu[row] -= like.cpu_milli
        self._memory[row] -= like.memory_bytes
        return TaskPlacement(
            group=like.group,
            rank=rank,
            node=NodeId(int(self._snapshot.nodes.id[row])),
            node_name=self._snapshot.names[row],
            cpu_milli=like.cpu_milli,
            memory_bytes=like.memory_bytes,
            devices=tuple(DeviceGrant(int(d), BLOCKS_PER_DEVICE) for d in devices),
        )
