"""The frozen input of a cycle: nothing in it changes, whatever happens to the world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import ClusterName, NodeId, QueueName
from atoll.core.model.inventory import Avoidance
from atoll.core.model.plan import GangRequest, shape_key
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import TaskShape
from atoll.core.model.spec import AntiAffinity
from atoll.core.state.apart import Place, domain_keys, shared
from atoll.core.state.charges import Charge
from atoll.core.state.columns import Nodes, Shapes
from atoll.core.state.fit_kernels import Hardware
from atoll.core.state.history_kernels import Expected
from atoll.core.state.holds import Hold
from atoll.core.state.interning import Labels
from atoll.core.state.labels import LabelSets
from atoll.core.state.limits import Limits
from atoll.core.state.needs import Need
from atoll.core.state.pace import PaceView
from atoll.core.state.rental_view import NO_RENTALS, RentalView
from atoll.core.state.run_times import GUESS_S
from atoll.core.state.running import Running
from atoll.core.state.shares import Shares
from atoll.core.state.typical import Typical
from atoll.core.state.windows import WindowView


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the plan needs to know of a cluster."""

    name: ClusterName
    closed: ReasonCode | None
    """Why it takes no new work; None when it does."""
    can_guard: bool
    boot_s: float = 0.0
    """From a decision until what was placed there runs, as measured; 0: at once, or not known."""
    gone: bool = False
    """It was forgotten: nobody is told of its nodes any more."""


@dataclass(frozen=True, slots=True)
class ClassView:
    """A class of pending jobs."""

    number: int
    queue: QueueName
    request: GangRequest
    priority: int
    shapes: tuple[tuple[int, ...], ...]
    """By task group: rows of its alternatives in `Snapshot.shapes`."""
    limits: tuple[int, ...]
    """Which of the snapshot's limits bind it."""
    jobs: int
    """Pending jobs of the class, those included that are not shown."""
    vertex: int
    """Of its queue in `Snapshot.shares`."""
    need: Need
    expected: Expected = (1 / GUESS_S, GUESS_S)
    """How long its jobs will run by what is known of others."""


@dataclass(frozen=True, slots=True)
class QueueView:
    """The heads of C classes worth a try: J jobs, class c has first[c] to first[c + 1]."""

    classes: tuple[ClassView, ...]
    first: NDArray[np.int64]
    more: NDArray[np.bool_]
    """(C) jobs behind these."""
    job: NDArray[np.int64]
    revision: NDArray[np.int64]
    submitted_at: NDArray[np.float64]
    attempts: NDArray[np.int32]
    deadline_at: NDArray[np.float64]
    guaranteed: NDArray[np.bool_]
    preemptions: NDArray[np.int16]
    trace: Sequence[str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Nodes, clusters and the heads of the queue at one moment. Arrays are not to be written."""

    world: object
    """Whose numbers it is in: those of kinds and models are the same in all its snapshots."""
    now: float
    stamp: int
    """Of the capacity; it grows with whatever could make a blocked class fit."""
    nodes: Nodes
    hardware: Hardware
    shapes: Shapes
    shape_values: tuple[TaskShape | None, ...]
    names: Sequence[str]
    row_of: dict[NodeId, int]
    clusters: tuple[ClusterView, ...]
    """By cluster number."""
    avoidances: tuple[Avoidance, ...]
    label_sets: LabelSets
    label_count: int
    levels: tuple[tuple[str, int], ...]
    """(level, column of `nodes.domain`), the narrowest first."""
    kinds: dict[str, int]
    typical: Typical
    """Tasks that fragmentation is measured against."""
    queue: QueueView
    limits: Limits
    shares: Shares
    running: Running
    holds: tuple[Hold, ...]
    """Their capacity is taken from `nodes`, their jobs are not in `queue`."""
    first: frozenset[QueueName]
    """Queues that come first this once: capacity was taken from them for nothing."""
    apart: Mapping[str, tuple[Place, ...]]
    """Where jobs are that others are kept apart from, by the name that they share."""
    pace: PaceView
    calm: frozenset[QueueName]
    """Queues whose jobs stop nobody for their priority."""
    windows: WindowView
    """Of bookings that are not over."""
    charges: tuple[Charge, ...]
    """What open ones charge; limits and shares count it as used."""
    rentals: RentalView = NO_RENTALS

    def closed(self, cluster: int, request: GangRequest, *, now: float) -> ReasonCode | None:
        """Why a cluster does not take a request now; None when it does."""
        view = self.clusters[cluster]
        if view.closed is not None:
            return view.closed
        if request.needs_guard and not view.can_guard:
            return ReasonCode.ON_LOST_UNSUPPORTED
        avoided = any(
            a.cluster == view.name and a.node is None for a in self.avoids(request, now=now)
        )
        return ReasonCode.CLUSTER_AVOIDED if avoided else None

    def avoided_rows(self, request: GangRequest, *, now: float) -> NDArray[np.int64]:
        """Rows of nodes that are avoided for the request now."""
        nodes = [a.node for a in self.avoids(request, now=now) if a.node is not None]
        return np.array([self.row_of[n] for n in nodes if n in self.row_of], np.int64)

    def avoids(self, request: GangRequest, *, now: float) -> list[Avoidance]:
        """Avoidances that hold for the request now."""
        live = [a for a in self.avoidances if a.until > now]
        key = shape_key(request) if any(a.shape_key for a in live) else ""
        return [a for a in live if a.shape_key in ("", key)]

    def too_close(self, apart: AntiAffinity) -> NDArray[np.bool_]:
        """(N) True for the nodes that share a domain with a job of the same name."""
        held = [
            Place(
                hold.job.request.anti_affinity.level, tuple(t.node for t in hold.nomination.tasks)
            )
            for hold in self.holds
            if hold.job.request.anti_affinity and hold.job.request.anti_affinity.name == apart.name
        ]
        by_level: dict[str, list[int]] = {apart.level: []}
        for place in (*self.apart.get(apart.name, ()), *held):
            rows = [self.row_of[node] for node in place.nodes if node in self.row_of]
            for level in {apart.level, place.level}:
                by_level.setdefault(level, []).extend(rows)
        near = np.zeros(len(self.names), np.bool_)
        for level, rows in by_level.items():
            keys = domain_keys(self.nodes, self.level_column(level))
            near |= shared(keys, np.array(rows, np.int64))
        return near

    def label_sets_without(self, labels: Labels) -> NDArray[np.bool_]:
        """(label sets) True for those that hold none of the labels; no value: any of the key."""
        return ~self.label_sets.having(labels, count=self.label_count)

    def label_sets_with(self, labels: Labels) -> NDArray[np.bool_]:
        """(label sets) True for those that hold every label."""
        return self.label_sets.holding(labels, count=self.label_count)

    def level_column(self, level: str) -> int | None:
        """Column of `nodes.domain` for a level; None when no node has it."""
        return dict(self.levels).get(level)

    def task_shape(self, number: int) -> TaskShape:
        """The shape in a row of `shapes`."""
        shape = self.shape_values[number]
        if shape is None:
            raise LookupError(f"shape {number} is not in use")
        return shape
