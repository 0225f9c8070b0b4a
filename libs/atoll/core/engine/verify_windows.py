"""Windows of bookings in the check before a commit: nobody breaks one who has no right to.

It counts by itself, task by task, what would be on a node when a window begins.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from atoll.core.model.booking import NodeShare, OnEnd, Window, held_for_s, owned_by
from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import NodeId, QueueName
from atoll.core.model.plan import GangPlacement, Nomination, Plan, RunTerms, TaskPlacement
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.state.booked import Booked
from atoll.core.state.ledger import Ledger
from atoll.core.state.mig import grant_bits


@dataclass(frozen=True, slots=True)
class _Use:
    """A task on a node."""

    queue: QueueName
    marks: tuple[str, ...]
    ends_at: float
    task: TaskPlacement
    placement: GangPlacement | None = None
    """None: it runs already."""


def broken(
    placements: Sequence[GangPlacement], ledger: Ledger, now: float
) -> Iterator[tuple[int, str]]:
    """Which placements break windows, by their places, and how, at wall time `now`."""
    if not ledger.booked:
        return
    book = _Book(placements, ledger, now)
    for at, placement in enumerate(placements):
        why = book.fault(placement)
        if why:
            yield at, why


def verify_holds_beside(plan: Plan, ledger: Ledger, now: float) -> None:
    """Raise DomainError PLAN_INVALID when a hold reaches into a window of somebody else."""
    if not ledger.booked:
        return
    for nomination in plan.nominations:
        for window, share in _reached(nomination, ledger, now):
            if any(_overlap(share, task) for task in nomination.tasks if task.node == share.node):
                raise DomainError(
                    f"what is held for job {nomination.job} reaches into {window.booking}",
                    code=ErrorCode.PLAN_INVALID,
                )


class _Book:
    """Windows and uses of the nodes that a plan places jobs on."""

    def __init__(self, placements: Sequence[GangPlacement], ledger: Ledger, now: float) -> None:
        self._ledger, self._now = ledger, now
        self._placements = placements
        self._uses: dict[NodeId, list[_Use]] | None = None

    def fault(self, placement: GangPlacement) -> str:
        """How a placement breaks a window; empty when it does not."""
        if placement.request.reservation:
            return self._strays(placement)
        end, booked = self._end(placement), self._ledger.booked
        for node in {task.node for task in placement.tasks}:
            near = booked.on(node, now=self._now, until=end)
            met = [each for each in near if self._meets(placement, each[0])]
            why = self._crowds(node, met) if met else ""
            if why:
                return why
        return ""

    def _strays(self, placement: GangPlacement) -> str:
        wanted, now = placement.request.reservation, self._now
        for task in placement.tasks:
            shares = defaultdict[int, list[NodeShare]](list)
            for window, share in self._ledger.booked.on(task.node, now=now, until=float("inf")):
                is_open = window.open or window.start <= now
                if window.booking == wanted and is_open and self._is_owner(window, placement):
                    shares[window.id].append(share)
            if not any(_holds(_joined(parts), task) for parts in shares.values()):
                return f"it is not inside {wanted}, which it asks for"
        return ""

    def _meets(self, placement: GangPlacement, window: Window) -> bool:
        if self._is_owner(window, placement):
            return False
        return not (window.lends and placement.request.terms.preemptible)

    def _end(self, placement: GangPlacement) -> float:
        terms = placement.request.terms
        return self._now + held_for_s(terms.time_limit_s, preemptible=terms.preemptible)

    def _is_owner(self, window: Window, placement: GangPlacement) -> bool:
        if not owned_by(window.owners, placement.queue, placement.request.marks):
            return False
        stops = window.on_end is OnEnd.STOP and not placement.request.terms.preemptible
        return not (stops and window.end < self._end(placement))

    def _crowds(self, node: NodeId, met: Sequence[Booked]) -> str:
        for window, share in met:
            if share.whole:
                return f"all of node {share.node_name} is booked by {window.booking}"
        for window, share in met:
            moment = max(window.start, self._now)
            there = [b for b in met if b[0].start <= moment < b[0].end]
            if not self._is_room(node, there, moment):
                return f"it leaves too little of node {share.node_name} to {window.booking}"
        return ""

    def _is_room(self, node: NodeId, there: Sequence[Booked], moment: float) -> bool:
        """Whether all of some windows' shares are free at a moment, but for their owners' use."""
        others, own = [], defaultdict[int, list[TaskPlacement]](list)
        for use in self._uses_of(node):
            place = self._share_of(use, there)
            if place is not None:
                own[place].append(use.task)
            elif use.ends_at > moment:
                others.append(use.task)
        claims = [_Claim(share, own[at]) for at, (_, share) in enumerate(there)]
        nodes, row = self._ledger.table.nodes, self._ledger.table.row_of[node]
        cpu = sum(c.cpu for c in claims) + sum(task.cpu_milli for task in others)
        memory = sum(c.memory for c in claims) + sum(task.memory_bytes for task in others)
        if cpu > nodes.cpu_cap[row] or memory > nodes.memory_cap[row]:
            return False
        return not _collide(claims, others)

    def _uses_of(self, node: NodeId) -> Sequence[_Use]:
        if self._uses is None:
            self._uses = {task.node: [] for p in self._placements for task in p.tasks}
            for name, use in (*self._held(), *self._placed()):
                if name in self._uses:
                    self._uses[name].append(use)
        return self._uses[node]

    def _held(self) -> Iterator[tuple[NodeId, _Use]]:
        for holding in self._ledger.holdings.values():
            run = holding.run
            marks = run.marks if run is not None else ()
            ends_at = _ends_at(run.terms, run.started_at) if run is not None else float("inf")
            for task in holding.tasks:
                yield task.node, _Use(holding.queue, marks, ends_at, task)

    def _placed(self) -> Iterator[tuple[NodeId, _Use]]:
        for placement in self._placements:
            ends_at = _ends_at(placement.request.terms, self._now)
            for task in placement.tasks:
                marks = placement.request.marks
                yield task.node, _Use(placement.queue, marks, ends_at, task, placement)

    def _share_of(self, use: _Use, there: Sequence[Booked]) -> int | None:
        """Whose share a task uses: its owner's, or one that it has to leave when an owner comes."""
        for at, (window, share) in enumerate(there):
            if use.ends_at <= window.start:
                continue
            if owned_by(window.owners, use.queue, use.marks):
                return at
            enters = use.placement is not None and self._meets(use.placement, window)
            if not enters and _is_on(share, use.task):
                return at
        return None


class _Claim:
    """What a share is to have, and what its owners use beyond it."""

    def __init__(self, share: NodeShare, own: Sequence[TaskPlacement]) -> None:
        self.share = share
        self.cpu = max(share.cpu_milli, sum(task.cpu_milli for task in own))
        self.memory = max(share.memory_bytes, sum(task.memory_bytes for task in own))
        used: defaultdict[int, int] = defaultdict(int)
        for grant in (grant for task in own for grant in task.devices):
            used[grant.index] += grant.blocks
        for grant in share.devices:
            used[grant.index] = max(used[grant.index], grant.blocks)
        self.blocks = used


def _collide(claims: Sequence[_Claim], others: Iterable[TaskPlacement]) -> bool:
    """Whether a device that is claimed is used by more than it has."""
    blocks: defaultdict[int, int] = defaultdict(int)
    bits: defaultdict[int, int] = defaultdict(int)
    for claim in claims:
        for index, used in claim.blocks.items():
            blocks[index] += used
        for grant in claim.share.devices:
            bits[grant.index] |= grant_bits(grant.profile, grant.slice_mask)
    claimed = {grant.index for claim in claims for grant in claim.share.devices}
    for grant in (grant for task in others for grant in task.devices):
        blocks[grant.index] += grant.blocks
        if bits[grant.index] & grant_bits(grant.profile, grant.slice_mask):
            return True
    return any(blocks[index] > BLOCKS_PER_DEVICE for index in claimed)


def _is_on(share: NodeShare, task: TaskPlacement) -> bool:
    booked = {grant.index: grant for grant in share.devices}
    for grant in task.devices:
        other = booked.get(grant.index)
        if other is None:
            continue
        bits = grant_bits(other.profile, other.slice_mask)
        if bits & grant_bits(grant.profile, grant.slice_mask):
            return True
        if other.blocks == BLOCKS_PER_DEVICE and grant.blocks:
            return True
    return False


def _overlap(share: NodeShare, task: TaskPlacement) -> bool:
    return share.whole or _is_on(share, task)


def _joined(parts: Sequence[NodeShare]) -> NodeShare:
    return replace(
        parts[0],
        cpu_milli=sum(part.cpu_milli for part in parts),
        memory_bytes=sum(part.memory_bytes for part in parts),
        devices=tuple(grant for part in parts for grant in part.devices),
        whole=any(part.whole for part in parts),
    )


def _holds(share: NodeShare, task: TaskPlacement) -> bool:
    """Whether a share is large enough for a task, and has its devices."""
    if share.whole:
        return True
    if task.cpu_milli > share.cpu_milli or task.memory_bytes > share.memory_bytes:
        return False
    booked = {grant.index: grant for grant in share.devices}
    for grant in task.devices:
        mine = booked.get(grant.index)
        if mine is None or grant.blocks > mine.blocks:
            return False
        bits = grant_bits(grant.profile, grant.slice_mask)
        # Who has booked a whole device may cut it, where that can be done.
        whole = mine.blocks == BLOCKS_PER_DEVICE
        if not whole and bits & ~grant_bits(mine.profile, mine.slice_mask):
            return False
    return True


def _ends_at(terms: RunTerms, started_at: float) -> float:
    return started_at + terms.time_limit_s if terms.time_limit_s else float("inf")


def _reached(nomination: Nomination, ledger: Ledger, now: float) -> Iterator[Booked]:
    for node in {task.node for task in nomination.tasks}:
        for window, share in ledger.booked.on(node, now=now, until=nomination.until):
            # Of users and labels a hold tells nothing.
            known = not (window.owners.users or window.owners.labels)
            if known and not owned_by(window.owners, nomination.queue, ()):
                yield window, share
