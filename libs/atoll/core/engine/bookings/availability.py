"""Rows of the calendar: what is booked, held by runs and free, by cluster, kind and time."""

from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.bookings.answers import AvailabilityRow
from atoll.core.engine.bookings.availability_kernels import BOOKED, FREE, RUNNING, cells
from atoll.core.engine.bookings.diary import Diary
from atoll.core.engine.bookings.places import EVERYTHING
from atoll.core.model.ids import ClusterName

Floats = NDArray[np.float64]


def availability(
    diary: Diary,
    start: float,
    step: float,
    *,
    count: int,
    clusters: Collection[ClusterName],
    kinds: Collection[str],
) -> tuple[AvailabilityRow, ...]:
    """By cluster, then kind: so many cells from `start` on, each of `step` seconds."""
    wanted = sorted(clusters) if clusters else diary.terrain.clusters
    return tuple(
        row
        for cluster in wanted
        for row in _of_cluster(diary, cluster, (start, step), count=count, kinds=kinds)
    )


def _of_cluster(
    diary: Diary,
    cluster: ClusterName,
    axis: tuple[float, float],
    *,
    count: int,
    kinds: Collection[str],
) -> Iterator[AvailabilityRow]:
    snapshot, rows = diary.terrain.snapshot, diary.terrain.rows(cluster)
    numbers = dict(sorted(snapshot.kinds.items()))
    found = cells(
        diary.book.columns, diary.book.head, snapshot.nodes, snapshot.hardware, rows,
        len(numbers), *axis, count, EVERYTHING,
    )  # fmt: skip
    model = snapshot.nodes.model[rows]
    totals = Counter(snapshot.hardware.models.kind[model[model > 0]].tolist())
    for kind, number in numbers.items():
        if totals[number] and (not kinds or kind in kinds):
            yield _row(cluster, kind, totals[number], values=found[:, number])
    if not kinds or "" in kinds:
        yield _row(cluster, "", len(rows), values=found[:, len(numbers)])


def _row(cluster: ClusterName, kind: str, total: int, *, values: Floats) -> AvailabilityRow:
    shown = np.round(values, 6)
    booked, running, free = (tuple(shown[which].tolist()) for which in (BOOKED, RUNNING, FREE))
    return AvailabilityRow(cluster, kind, total, booked, running, free)
