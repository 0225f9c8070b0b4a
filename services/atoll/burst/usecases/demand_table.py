"""Jobs in columns: some 80 bytes each beside their number, however many wait.

Rows are written as they are read; `columns` is a copy that others may look at meanwhile.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.burst.usecases.standing import Standing
from atoll.core.engine.burst.demand.series import Bools, Floats, Ints
from atoll.core.model.burst import chain_of
from atoll.core.model.burst_rules import Policies, policy_of
from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.ports.store.demand import DemandRow

MOST_ENDED: Final = 2_000_000
"""Jobs that are over, the latest: with more the history is shorter."""
FIRST_ROWS: Final = 1024
ROW: Final = np.dtype([
    ("job", np.int64), ("queue", np.int32), ("kind", np.int32), ("cluster", np.int32),
    ("devices", np.float64), ("submitted", np.float64), ("started", np.float64),
    ("ended", np.float64), ("limit", np.float64), ("begin", np.float64), ("cores", np.float64),
    ("waits", np.bool_), ("used", np.bool_),
])  # fmt: skip


@dataclass(slots=True)
class Names:
    """Numbers for names."""

    names: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """The same for the same name."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """(J) of each column."""

    rows: NDArray[np.void]
    queues: Sequence[str]
    kinds: Sequence[str]

    def __len__(self) -> int:
        return len(self.rows)

    def floats(self, name: str) -> Floats:
        """(J) one column."""
        found: Floats = self.rows[name]
        return found

    def ints(self, name: str) -> Ints:
        """(J) one column."""
        return np.asarray(self.rows[name], dtype=np.int64)

    def where(self, chosen: Bools) -> "Columns":
        """Some of the rows."""
        return Columns(self.rows[chosen], self.queues, self.kinds)

    def by_number(self) -> "Columns":
        """The same rows by number, in whatever order they were written."""
        order = np.argsort(self.rows["job"], kind="stable")
        return Columns(self.rows[order], self.queues, self.kinds)

    def counted(self, usual_kind: str, cpu: str) -> "Columns":
        """Each job as what it counts as: by its devices, or by its processors if it has none.

        A job that takes any devices counts as one that takes those of `usual_kind`.
        """
        rows, kinds = self.rows.copy(), [*self.kinds, usual_kind, cpu]
        unnamed = [number for number, name in enumerate(self.kinds) if not name]
        without = rows["devices"] == 0
        rows["kind"][np.isin(rows["kind"], unnamed) & ~without] = len(kinds) - 2
        rows["kind"][without] = len(kinds) - 1
        rows["devices"][without] = rows["cores"][without]
        return Columns(rows, self.queues, kinds)

    def wanting(self, now: float) -> Bools:
        """(J) takes devices, or would if there were room: a job that waits for others does not."""
        rows = self.rows
        fresh = (rows["started"] == 0) & (rows["ended"] == 0)
        later = fresh & (rows["waits"] | (rows["begin"] > now))
        found: Bools = (rows["devices"] > 0) & ~later
        return found


@dataclass(slots=True)
class DemandTable:
    """Of all jobs that are not over, and of those that ended lately."""

    standing: Standing = field(default_factory=Standing)
    _rows: NDArray[np.void] = field(default_factory=lambda: np.zeros(FIRST_ROWS, ROW))
    _place: dict[int, int] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)
    _queues: Names = field(default_factory=Names)
    _kinds: Names = field(default_factory=Names)
    _clusters: Names = field(default_factory=Names)
    _after: dict[int, tuple[JobId, ...]] = field(default_factory=dict)
    """Of those that wait for others, or for a time; those are few."""

    def __len__(self) -> int:
        return len(self._place)

    def put(self, rows: Iterable[DemandRow], *, now: float) -> None:
        """These jobs are as their rows say."""
        for row in rows:
            before = self.get(row.job)
            if before is not None:
                self.standing.leave(before)
                row = _as_it_ran(before, row)
            self._write(self._place_of(row.job), row)
            self.standing.enter(row, now=now)

    def get(self, job: JobId) -> DemandRow | None:
        """A job as it was written last."""
        place = self._place.get(job)
        return None if place is None else self._row(place)

    def drop_ended(self, before: float, *, most: int = MOST_ENDED) -> None:
        """Forget what ended before, and the oldest of what is more than that."""
        ended = self._rows["ended"]
        over = np.flatnonzero(self._rows["used"] & (ended > 0))
        if len(over) > most:
            before = max(before, float(np.partition(ended[over], -most)[-most]))
        for place in over[ended[over] < before].tolist():
            del self._place[int(self._rows["job"][place])]
            self._rows["used"][place] = False
            self._free.append(place)

    def columns(self) -> Columns:
        """A copy, for whoever looks at it in another thread."""
        used = self._rows[self._rows["used"]]
        return Columns(used, tuple(self._queues.names), tuple(self._kinds.names))

    def came(self, since: float, policies: Policies) -> int:
        """Jobs that were submitted since, over or not, by queues that may rent."""
        new = self._rows["used"] & (self._rows["submitted"] > since)
        names, counts = np.unique(self._rows["queue"][new], return_counts=True)
        queues = (QueueName(self._queues.names[number]) for number in names)
        pairs = zip(queues, counts.tolist(), strict=True)
        return sum(count for queue, count in pairs if policy_of(policies, queue).allowed)

    def related(self) -> dict[JobId, DemandRow]:
        """Those that wait for others, or for a time, and those that are waited for."""
        wanted = {JobId(job) for job in self._after}
        wanted |= {job for after in self._after.values() for job in after}
        found = ((job, self.get(job)) for job in sorted(wanted))
        return {job: row for job, row in found if row is not None}

    def _place_of(self, job: JobId) -> int:
        found = self._place.get(job)
        if found is None:
            found = self._free.pop() if self._free else len(self._place)
            if found == len(self._rows):
                self._rows = np.concatenate([self._rows, np.zeros(found, ROW)])
            self._place[job] = found
        return found

    def _write(self, place: int, row: DemandRow) -> None:
        self._rows[place] = (
            row.job, self._queues.number(row.queue), self._kinds.number(row.kind),
            self._clusters.number(row.cluster), row.devices, row.submitted_at, row.started_at,
            row.ended_at, row.limit_s, row.begin_at, row.cores, row.waits, True,
        )  # fmt: skip
        fresh = not (row.started_at or row.ended_at)
        if fresh and (row.after or row.begin_at):
            self._after[row.job] = row.after
        else:
            self._after.pop(row.job, None)

    def _row(self, place: int) -> DemandRow:
        (
            job, queue, kind, cluster, devices, submitted, started, ended, limit, begin, cores,
            waits, _,
        ) = self._rows[place].item()  # fmt: skip
        return DemandRow(
            JobId(job),
            QueueName(self._queues.names[queue]),
            self._kinds.names[kind],
            devices,
            submitted_at=submitted,
            started_at=started,
            ended_at=ended,
            limit_s=limit,
            waits=waits,
            cluster=ClusterName(self._clusters.names[cluster]),
            after=self._after.get(job, ()),
            begin_at=begin,
            cores=cores,
        )


def sums_by_chain(columns: Columns, weights: Floats) -> Mapping[tuple[str, str], float]:
    """Sums of weights (J) by queue, those below it included, and kind; all together: no queue."""
    kinds = len(columns.kinds)
    pairs = columns.ints("queue") * kinds + columns.ints("kind")
    sums = np.bincount(pairs, weights=weights, minlength=1)
    found: dict[tuple[str, str], float] = defaultdict(float)
    for pair in np.unique(pairs).tolist():
        queue, kind = divmod(pair, kinds)
        for each in chain_of(QueueName(columns.queues[queue])):
            found[each or "", columns.kinds[kind]] += float(sums[pair])
    return found


def of_queue(columns: Columns, queue: str, kind: str) -> Columns:
    """Jobs of a queue, and of those below it, that want a kind; no queue: of all."""
    mine = [
        number
        for number, name in enumerate(columns.queues)
        if not queue or queue in chain_of(QueueName(name))
    ]
    kinds = [number for number, name in enumerate(columns.kinds) if name == kind]
    of_kind = np.isin(columns.rows["kind"], kinds)
    return columns.where(of_kind & np.isin(columns.rows["queue"], mine))


def _as_it_ran(before: DemandRow, row: DemandRow) -> DemandRow:
    """What has ended holds nothing any more: it counts as what it ran on."""
    if row.ended_at and before.started_at and not row.kind:
        return replace(row, kind=before.kind, devices=before.devices)
    return row
