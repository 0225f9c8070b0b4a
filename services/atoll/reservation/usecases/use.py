"""What owners run in the windows of their bookings, counted as time goes by."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from atoll.core.model.booking import NodeShare, OccurrenceId, owned_by
from atoll.core.model.ids import NodeId
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reservation import OccurrenceState
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.state.ledger import Holding
from atoll.ports.store.bookings import Kept, Use

HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Busy:
    """What owners hold of an occurrence now."""

    devices: float
    runs: int
    """Also those without a device."""


def busy_now(every: Iterable[Kept], holdings: Iterable[Holding]) -> dict[OccurrenceId, Busy]:
    """What owners hold of each occurrence that runs and is somebody's."""
    running = [kept for kept in every if _is_used(kept)]
    found = {kept.occurrence.id: Busy(0.0, 0) for kept in running}
    by_node = _by_node(running)
    for holding in holdings if by_node else ():
        marks = holding.run.marks if holding.run is not None else ()
        for task in holding.tasks:
            for kept, share in by_node.get(task.node, ()):
                owners = kept.reservation.spec.owners
                if owned_by(owners, holding.queue, marks) and _inside(task, share):
                    before = found[kept.occurrence.id]
                    devices = before.devices + _devices(task)
                    found[kept.occurrence.id] = Busy(devices, before.runs + 1)
    return found


def counted(
    every: Mapping[OccurrenceId, Kept], busy: Mapping[OccurrenceId, Busy], *, now: float
) -> list[Kept]:
    """Occurrences with the use since the last look added, as if it had been as now all the time."""
    found = []
    for number, use in busy.items():
        kept = every[number]
        occurrence = kept.occurrence
        since = max(kept.used_until, occurrence.started_at)
        until = min(now, occurrence.end_at)
        hours = max(0.0, until - since) * use.devices / HOUR_S
        found.append(
            replace(
                kept,
                occurrence=replace(
                    occurrence, used_device_hours=occurrence.used_device_hours + hours
                ),
                busy_at=now if use.runs else kept.busy_at,
                used_until=max(until, kept.used_until),
            )
        )
    return found


def use_of(kept: Kept) -> Use:
    """What a row is to say."""
    occurrence = kept.occurrence
    return Use(
        occurrence.id,
        occurrence.used_device_hours,
        busy_at=kept.busy_at,
        used_until=kept.used_until,
    )


def _is_used(kept: Kept) -> bool:
    running = kept.occurrence.state is OccurrenceState.RUNNING
    return running and not kept.reservation.spec.owners.nobody


def _by_node(running: Sequence[Kept]) -> dict[NodeId, list[tuple[Kept, NodeShare]]]:
    found: dict[NodeId, list[tuple[Kept, NodeShare]]] = defaultdict(list)
    for kept in running:
        for part in kept.occurrence.parts:
            for share in part.shares:
                found[share.node].append((kept, share))
    return found


def _inside(task: TaskPlacement, share: NodeShare) -> bool:
    """Whether a task is on what is booked: all its devices are, or it has none."""
    if share.whole or not task.devices:
        return True
    return {grant.index for grant in task.devices} <= {grant.index for grant in share.devices}


def _devices(task: TaskPlacement) -> float:
    blocks = sum(grant.blocks or BLOCKS_PER_DEVICE for grant in task.devices)
    return blocks / BLOCKS_PER_DEVICE
