"""Why a pending job waits: all blockers with numbers, and a tally of the nodes per cluster."""

import math
from dataclasses import dataclass
from itertools import count

import numpy as np

from atoll.core.engine.gangs import UNLIMITED, Outcome, gang_placer
from atoll.core.engine.limits import binding, limit_reasons, units_left
from atoll.core.engine.masks import ByShape, Masks
from atoll.core.engine.scoring import scoring_for
from atoll.core.engine.why import Codes, Sight, reasons
from atoll.core.engine.windows.admission import Admission, taken
from atoll.core.engine.windows.bookings import claimant
from atoll.core.model.ids import MAX_ATTEMPTS
from atoll.core.model.plan import GangRequest, PendingJob
from atoll.core.model.reason import Reason, ReasonCode
from atoll.core.model.resources import DeviceRequest
from atoll.core.policies.interfaces import WHY, Policies
from atoll.core.state.mig import TABLES, UNITS_PER_BLOCK
from atoll.core.state.needs import need_of
from atoll.core.state.shape_table import shapes_of
from atoll.core.state.snapshot import ClassView, Snapshot
from atoll.core.state.statement import Statement

UNKNOWN_KIND = -3


@dataclass(frozen=True, slots=True)
class ClusterTally:
    """Nodes of a cluster by what keeps the job's tasks from them."""

    cluster: str
    nodes: int
    counts: tuple[tuple[str, int], ...]
    """(reason code, or `FITS`; nodes), the most first."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is known of a job's wait, as of the snapshot."""

    fits_now: bool
    summary: str
    reasons: tuple[Reason, ...]
    """All blockers, the strongest first."""
    tallies: tuple[ClusterTally, ...]
    """Of the first task group; by the alternative that fits on most nodes."""
    jobs_ahead: int


def explain(
    snapshot: Snapshot, pending: PendingJob, policies: Policies, *, now: float, ahead: int = 0
) -> Explanation:
    """Why `pending` waits. `ahead`: jobs that are before it in the order.

    `depends_on` of the pending job is taken as what it still waits for.
    """
    look = _Look(snapshot, pending, policies, now=now)
    blockers = look.own_reasons() + look.limit_reasons()
    if not look.fits(UNLIMITED):
        blockers += reasons(look.sight, pending.request, look.view.shapes)
    fits_now = not blockers
    if fits_now and ahead:
        blockers = (_behind(ahead),)
    summary = blockers[0].message if blockers else "it fits now and will be placed next"
    return Explanation(fits_now, summary, blockers, look.tallies(), ahead)


class _Look:
    """A job beside a snapshot, its shapes in a table of their own."""

    def __init__(
        self, snapshot: Snapshot, pending: PendingJob, policies: Policies, *, now: float
    ) -> None:
        self._snapshot, self._pending, self._now = snapshot, pending, now
        groups = pending.request.groups
        values = [shape for group in groups for shape in group.shapes]
        shapes = shapes_of(values, lambda kind: snapshot.kinds.get(kind, UNKNOWN_KIND))
        scoring = scoring_for(snapshot, shapes, policies.score)
        statement = Statement(snapshot.nodes, snapshot.hardware, shapes)
        self.view = view_of(snapshot, pending)
        masks = Masks(snapshot, policies, now)
        self.sight = Sight(
            snapshot, statement.nodes, scoring, masks, advises=True, queue=pending.queue
        )
        self._gangs = gang_placer(snapshot, statement, scoring, gathers=policies.score.gathers)

    def fits(self, units_left: int) -> bool:
        """Whether it could be placed with so much left of its queues' limits, in 1/56 block."""
        return self._fits_locally(units_left) or self._fits_rented(units_left)

    def _fits_locally(self, units_left: int) -> bool:
        request = self._pending.request
        masks, statement = self.sight.masks, self._gangs.statement
        who = claimant(self._pending.queue, request)
        entrance = Admission(masks.bookings, None).to(who, statement.nodes)
        where = {
            number: masks.unbooked(request, shape) & entrance.rows
            for group, numbers in zip(request.groups, self.view.shapes, strict=True)
            for shape, number in zip(group.shapes, numbers, strict=True)
        }
        with taken(statement.nodes, entrance.kept):
            return self._fits(where, units_left)

    def _fits_rented(self, units_left: int) -> bool:
        request, queue = self._pending.request, self._pending.queue
        masks = self.sight.masks
        numbered = [
            (number, shape)
            for group, numbers in zip(request.groups, self.view.shapes, strict=True)
            for shape, number in zip(group.shapes, numbers, strict=True)
        ]
        return any(
            self._fits(
                {n: masks.rented(request, shape, queue, rental=rental) for n, shape in numbered},
                units_left,
            )
            for rental in masks.usable_rentals(request, queue)
        )

    def _fits(self, where: ByShape, units_left: int) -> bool:
        statement = self._gangs.statement
        mark = statement.checkpoint()
        outcome = self._gangs.place(self.view, where, job=0, units_left=units_left)
        statement.rollback(mark)
        return outcome is Outcome.PLACED

    def own_reasons(self) -> tuple[Reason, ...]:
        """What the job itself waits for."""
        found = []
        if self._pending.depends_on:
            found.append(_dependency(self._pending))
        if self._pending.attempts >= MAX_ATTEMPTS:
            found.append(Reason(ReasonCode.HELD, f"it has had {MAX_ATTEMPTS} attempts, the most"))
        if self._pending.begin_at > self._now:
            found.append(_begin(self._pending.begin_at - self._now))
        return tuple(found)

    def limit_reasons(self) -> tuple[Reason, ...]:
        """The limits that keep it, or would keep it if there was a place for it."""
        used = self._snapshot.limits.used
        left = units_left(self.view, self._snapshot, used=used)
        if not binding(self.view, self._snapshot) or self.fits(left):
            return ()
        if not self.fits(UNLIMITED) and least_units(self._pending.request) <= left:
            return ()
        return limit_reasons(self.view, self._snapshot, used=used)

    def tallies(self) -> tuple[ClusterTally, ...]:
        """Nodes by what keeps tasks of the first group from them."""
        request = self._pending.request
        options = zip(request.groups[0].shapes, self.view.shapes[0], strict=True)
        codes = [self.sight.codes(request, shape, number)[0] for shape, number in options]
        best = max(codes, key=lambda each: int((each == 0).sum()))
        tallies = [
            _tally(view.name, best[self.sight.nodes.cluster == number])
            for number, view in enumerate(self._snapshot.clusters)
            if not view.gone
        ]
        return tuple(sorted(tallies, key=lambda each: each.cluster))


def least_units(request: GangRequest) -> int:
    """The least that a request charges to a queue's limit, in 1/56 block."""
    return sum(g.min_count * min(_units(s.device) for s in g.shapes) for g in request.groups)


def _units(device: DeviceRequest | None) -> int:
    if device is None:
        return 0
    if device.profile:
        tables = [(t, p) for t in TABLES if (p := t.find(device.profile))]
        return device.count * min((t.charge(p) for t, p in tables), default=0)
    if device.memory_bytes:
        return UNITS_PER_BLOCK
    return device.count * device.blocks * UNITS_PER_BLOCK


def view_of(snapshot: Snapshot, pending: PendingJob) -> ClassView:
    """A job as a class of its own; its shapes are rows of a table of theirs, in order."""
    numbers = count()
    rows = tuple(tuple(next(numbers) for _ in g.shapes) for g in pending.request.groups)
    return ClassView(
        number=-1,
        queue=pending.queue,
        request=pending.request,
        priority=pending.priority,
        shapes=rows,
        limits=snapshot.limits.of(pending.queue),
        jobs=1,
        vertex=snapshot.shares.vertex(pending.queue),
        need=need_of(pending.request, lambda kind: snapshot.kinds.get(kind, UNKNOWN_KIND)),
    )


def _tally(cluster: str, codes: Codes) -> ClusterTally:
    counts = np.bincount(codes, minlength=len(WHY)).tolist()
    named = [(str(WHY[at] or "FITS"), nodes) for at, nodes in enumerate(counts) if nodes]
    named.sort(key=lambda item: (-item[1], item[0]))
    return ClusterTally(cluster, len(codes), tuple(named))


def _dependency(pending: PendingJob) -> Reason:
    names = ", ".join(str(job) for job in pending.depends_on)
    return Reason(
        ReasonCode.DEPENDENCY,
        f"it waits until these jobs have succeeded: {names}",
        count=len(pending.depends_on),
    )


def _begin(seconds: float) -> Reason:
    return Reason(
        ReasonCode.BEGIN_IN_FUTURE,
        f"it is not to begin for another {seconds:.0f} seconds",
        needed=math.ceil(seconds),
        unit="seconds",
    )


def _behind(ahead: int) -> Reason:
    return Reason(
        ReasonCode.BEHIND_OTHERS,
        f"it fits now; {ahead} jobs are before it",
        count=ahead,
        help="wait for the next cycles",
    )
