"""What open bookings charge to queues beyond what these use there: it counts as held by them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.ids import QueueName
from atoll.core.state.columns import Nodes
from atoll.core.state.fit_kernels import UNITS, Hardware
from atoll.core.state.limits import ALL_KINDS, Limits
from atoll.core.state.queue_tree import QueueTree, ancestry
from atoll.core.state.run_columns import uses_of
from atoll.core.state.running import Running
from atoll.core.state.shares import CPU, DEVICES, MEMORY, Shares
from atoll.core.state.windows import WindowView

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Charge:
    """What one open window charges a queue that does not use all of it."""

    window: int
    """Its number in the view."""
    queue: QueueName
    amounts: Ints
    """(R) milli-CPU, bytes, and 1/56 blocks by device kind."""

    def by_limit(self, limits: Limits) -> Ints:
        """(limits) what of it counts against each."""
        found = np.zeros(len(limits.limit), np.int64)
        devices = self.amounts[DEVICES:]
        for number in limits.of(self.queue):
            kind = int(limits.kind[number])
            found[number] = devices.sum() if kind == ALL_KINDS else devices[kind]
        return found


def charges_of(
    view: WindowView, nodes: Nodes, *, hardware: Hardware, running: Running, now: float, wide: int
) -> tuple[Charge, ...]:
    """Of all windows that are open now; `wide`: resources that are counted (R)."""
    begun = (view.start <= now) | view.is_open
    numbers = np.flatnonzero(begun & (view.end > now)).tolist()
    charging = [number for number in numbers if view.values[number].charge]
    if not charging:
        return ()
    booked = _Booked(view, nodes, hardware=hardware, running=running, wide=wide)
    return tuple(
        Charge(number, view.values[number].charge[0], booked.unused(number)) for number in charging
    )


def with_charges(
    found: Sequence[Charge], limits: Limits, shares: Shares, *, tree: QueueTree
) -> tuple[Limits, Shares]:
    """Limits and shares in which what is charged counts as used."""
    if not found:
        return limits, shares
    used, held = limits.used.copy(), shares.held.copy()
    for charge in found:
        held[list(tree.chain(tree(charge.queue)))] += charge.amounts[: held.shape[1]]
        used += charge.by_limit(limits)
    return replace(limits, used=used), replace(shares, held=held)


class _Booked:
    """Amounts of windows on nodes, less what the charged queue's own runs have of them."""

    def __init__(
        self,
        view: WindowView,
        nodes: Nodes,
        *,
        hardware: Hardware,
        running: Running,
        wide: int,
    ) -> None:
        self._view, self._nodes, self._hardware, self._running = view, nodes, hardware, running
        self._layout = view.on(nodes.id, nodes.model.shape[1])
        self._wide = wide
        slots = running.slots()
        self._uses = uses_of(running.tasks, slots, nodes)
        of_task = np.repeat(slots, np.diff(self._uses.first_task))
        self._queue = running.runs.queue[of_task]

    def unused(self, window: int) -> Ints:
        """(R) what a window has that its queue does not use."""
        amounts = np.zeros(self._wide, np.int64)
        shares, nodes = self._layout.shares, self._nodes
        own = self._own(self._view.values[window].charge[0])
        for share in np.flatnonzero(shares.window == window).tolist():
            row = int(shares.node[share])
            tasks = own[self._uses.row[own] == row]
            whole = bool(shares.whole[share])
            cpu = int(nodes.cpu_cap[row] if whole else shares.cpu[share])
            memory = int(nodes.memory_cap[row] if whole else shares.memory[share])
            amounts[CPU] += max(0, cpu - int(self._uses.cpu[tasks].sum()))
            amounts[MEMORY] += max(0, memory - int(self._uses.memory[tasks].sum()))
            for device, units in self._devices(share, row):
                kind = int(self._hardware.models.kind[nodes.model[row, device]])
                left = max(0, units - self._units(tasks, device))
                if kind >= 0 and DEVICES + kind < self._wide:
                    amounts[DEVICES + kind] += left
        return amounts

    def _own(self, queue: QueueName) -> Ints:
        """Tasks of a queue and of those below it."""
        names = self._running.queues.values
        mine = [number for number, name in enumerate(names) if queue in ancestry(name)]
        return np.flatnonzero(np.isin(self._queue, mine))

    def _devices(self, share: int, row: int) -> Iterator[tuple[int, int]]:
        """Devices of a share with their 1/56 blocks; slices by their part of the memory."""
        shares = self._layout.shares
        if shares.whole[share]:
            for device in np.flatnonzero(self._nodes.model[row] > 0).tolist():
                yield device, UNITS * 100
            return
        for grant in range(int(shares.first_grant[share]), int(shares.first_grant[share + 1])):
            slices = int(shares.bits[grant] & 255).bit_count()
            units = UNITS * int(shares.blocks[grant]) + slices * UNITS * 100 // 8
            yield int(shares.device[grant]), units

    def _units(self, tasks: Ints, device: int) -> int:
        units = 0
        for task in tasks.tolist():
            grants = slice(*self._uses.first_grant[task : task + 2].tolist())
            here = self._uses.device[grants] == device
            units += UNITS * int(self._uses.blocks[grants][here].sum())
            bits = self._uses.bits[grants][here] & 255
            units += sum(int(each).bit_count() for each in bits.tolist()) * UNITS * 100 // 8
        return units
