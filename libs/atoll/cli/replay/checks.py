"""Whether a device was ever given to more than it has, seen from three sides.

From the jobs' own times and devices, from what nodes show as used at one moment, and from the
ledger in which a simulated cluster writes what it really started and stopped.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atoll.client.views import JobInfo, NodeInfo
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.core.model.resources import BLOCKS_PER_DEVICE

Device = tuple[str, int]
"""Name of the node, position of the device."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a device: blocks, or memory slices of a MIG device."""

    device: Device
    blocks: int
    slice_mask: int


@dataclass(frozen=True, slots=True)
class Move:
    """An attempt takes shares, or, without any, gives back all that it holds."""

    at: float
    attempt: str
    shares: tuple[Share, ...] = ()

    @property
    def order(self) -> tuple[float, bool, str]:
        """By time; at the same moment what is given back comes first."""
        return self.at, bool(self.shares), self.attempt


class Usage:
    """What is held, kept up to date move by move."""

    def __init__(self) -> None:
        self._held: dict[Device, list[tuple[str, Share]]] = defaultdict(list)
        self._of: dict[str, set[Device]] = defaultdict(set)
        self._blocks = 0
        self.peak_blocks = 0

    def apply(self, move: Move) -> Iterator[str]:
        """Take a move in; tells of every device whose parts have several owners then."""
        if not move.shares:
            self._give_back(move.attempt)
        for share in move.shares:
            holders = self._held[share.device]
            holders.append((move.attempt, share))
            self._of[move.attempt].add(share.device)
            self._blocks += _weight(share)
            if told := overcommitted(share.device, [held for _, held in holders]):
                yield f"{told} by {', '.join(sorted({attempt for attempt, _ in holders}))}"
        self.peak_blocks = max(self.peak_blocks, self._blocks)

    def _give_back(self, attempt: str) -> None:
        for device in self._of.pop(attempt, ()):
            mine = [share for owner, share in self._held[device] if owner == attempt]
            self._held[device] = [item for item in self._held[device] if item[0] != attempt]
            self._blocks -= sum(_weight(share) for share in mine)


def overcommitted(device: Device, shares: Iterable[Share]) -> str:
    """What is wrong with the shares of one device; empty: nothing."""
    shares = list(shares)
    blocks = sum(share.blocks for share in shares)
    masks = [share.slice_mask for share in shares if share.slice_mask]
    where = f"device {device[1]} of {device[0]}"
    if blocks > BLOCKS_PER_DEVICE:
        return f"{where} is held to {blocks}%"
    if sum(masks) != _union(masks):
        return f"slices of {where} are held twice"
    return f"{where} is held in shares and in slices" if blocks and masks else ""


def check_jobs(jobs: Iterable[JobInfo]) -> tuple[Usage, list[str]]:
    """Use of all devices over time, from placing to end of each job's last attempt."""
    return _swept(move for job in jobs for move in _moves_of_job(job))


def check_nodes(nodes: Iterable[NodeInfo]) -> list[str]:
    """Devices whose present allocations are more than they have."""
    faults = []
    for node in nodes:
        uses: dict[int, list[Share]] = defaultdict(list)
        for use in node.device_use:
            device = (node.inventory.name, use.index)
            uses[use.index].append(Share(device, use.blocks, use.slice_mask))
        for index, shares in sorted(uses.items()):
            if told := overcommitted((node.inventory.name, index), shares):
                faults.append(told)
    return faults


def check_ledger(path: Path) -> list[str]:
    """What the ledger of a simulated cluster shows."""
    entries = list(_entries(path))
    _, faults = _swept(_moves_of_ledger(entries))
    told = [f"the cluster saw {_violation(e)}" for e in entries if e["t"] == "violation"]
    return [*faults, *told]


def _swept(moves: Iterable[Move]) -> tuple[Usage, list[str]]:
    usage, faults = Usage(), list[str]()
    for move in sorted(moves, key=lambda move: move.order):
        faults.extend(f"at {move.at:.3f}: {told}" for told in usage.apply(move))
    return usage, faults


def _moves_of_job(job: JobInfo) -> Iterator[Move]:
    shares = tuple(
        Share((task.node_name, grant.index), grant.blocks, grant.slice_mask)
        for task in job.tasks
        for grant in task.devices
    )
    if not job.placed_at or not shares:
        return
    yield Move(job.placed_at, job.attempt, shares)
    if job.ended_at:
        yield Move(_after(job.ended_at, job.placed_at), job.attempt)


def _moves_of_ledger(entries: Iterable[Mapping[str, Any]]) -> Iterator[Move]:
    started: dict[str, float] = {}
    for entry in entries:
        attempt, at = str(entry["attempt"]), float(entry["at"])
        if entry["t"] == "start":
            started[attempt] = at
            if shares := _ledger_shares(entry):
                yield Move(at, attempt, shares)
        elif entry["t"] == "stop":
            yield Move(_after(at, started.get(attempt, at)), attempt)


def _after(end: float, start: float) -> float:
    # What is given back at a moment comes before what is taken then; never before its own start.
    return max(end, math.nextafter(start, math.inf))


def _ledger_shares(entry: Mapping[str, Any]) -> tuple[Share, ...]:
    return tuple(
        Share((task["node"], grant[0]), grant[1], grant[2])
        for task in entry["tasks"]
        for grant in task["devices"]
    )


def _entries(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith("\n"):
                return  # still being written
            try:
                entry = json.loads(line)
                yield {**entry, "t": entry["t"], "attempt": entry["attempt"], "at": entry["at"]}
            except (ValueError, TypeError, KeyError) as error:
                told = f"line {number} is no entry of a ledger ({error!r})"
                raise InvalidInput((FieldViolation(str(path), told),)) from None


def _violation(entry: Mapping[str, Any]) -> str:
    others = ", ".join(str(other) for other in entry.get("with", ()))
    return f"{entry.get('what')} on {entry.get('node')}: {entry['attempt']} with {others}"


def _weight(share: Share) -> int:
    # A device of which any slice is taken counts whole: nothing else can have it.
    return BLOCKS_PER_DEVICE if share.slice_mask else share.blocks


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union
