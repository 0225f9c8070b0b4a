"""The same decisions in slow plain Python, written from the rules and not from the kernels."""

from dataclasses import dataclass, field

from atoll.core.model.inventory import Device, Node
from atoll.core.model.plan import PendingJob, TaskPlacement
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.state.mig import (
    MEDIA_BIT,
    Layout,
    MigTable,
    Profile,
    layout_of,
    legal_starts,
    table_for,
)


@dataclass
class SlowNode:
    """A node with what is free on it."""

    node: Node
    cpu: int = 0
    memory: int = 0
    blocks: dict[int, int] = field(default_factory=dict)
    slices: dict[int, int] = field(default_factory=dict)
    cpu_cap: int = 0
    memory_cap: int = 0

    def __post_init__(self) -> None:
        inventory = self.node.inventory
        if inventory.up:
            self.cpu = self.cpu_cap = inventory.cpu_milli - inventory.local_use.cpu_milli
            self.memory = self.memory_cap = inventory.memory_bytes
        for device in self.devices():
            self.blocks[device.index] = 0 if _only_slices(device) else 100
            self.slices[device.index] = 0
        for index, used in inventory.local_use.blocks:
            self.blocks[index] = self.blocks.get(index, 0) - used

        self.start = (self.cpu, self.memory, dict(self.blocks), dict(self.slices))

    def in_use(self) -> bool:
        """Whether a task has taken something here."""
        return self.start != (self.cpu, self.memory, self.blocks, self.slices)

    def devices(self) -> list[Device]:
        return [d for d in self.node.inventory.devices if d.healthy and self.node.inventory.up]

    def take(self, task: TaskPlacement) -> None:
        self.cpu -= task.cpu_milli
        self.memory -= task.memory_bytes
        for grant in task.devices:
            self.blocks[grant.index] -= grant.blocks
            media = MEDIA_BIT if grant.profile.endswith("+me") else 0
            self.slices[grant.index] |= grant.slice_mask | media

    def grants(self, shape: TaskShape) -> tuple[DeviceGrant, ...] | None:
        """The devices for a task, None when it does not fit."""
        if self.cpu < shape.cpu_milli or self.memory < shape.memory_bytes:
            return None
        if shape.device is None:
            return ()
        if shape.device.profile:
            return self._slices(shape.device)
        if shape.device.whole:
            whole = [d for d in self._in_blocks(shape.device) if self.blocks[d.index] == 100]
            if len(whole) < shape.device.count:
                return None
            return tuple(DeviceGrant(d.index, blocks=100) for d in whole[: shape.device.count])
        return self._share(shape.device)

    def _share(self, request: DeviceRequest) -> tuple[DeviceGrant, ...] | None:
        options = [
            (self.blocks[d.index] - _blocks(request, d), d.index, _blocks(request, d))
            for d in self._in_blocks(request)
        ]
        fitting = [option for option in options if option[0] >= 0]
        if not fitting:
            return None
        _, index, blocks = min(fitting)
        return (DeviceGrant(index, blocks=blocks),)

    def _in_blocks(self, request: DeviceRequest) -> list[Device]:
        return [
            d
            for d in self.devices()
            if not _only_slices(d) and not self.slices[d.index] and request.kind in ("", d.kind)
        ]

    def _slices(self, request: DeviceRequest) -> tuple[DeviceGrant, ...] | None:
        states = dict(self.slices)
        grants = []
        for _ in range(request.count):
            grant = self._slice(request, states)
            if grant is None:
                return None
            grants.append(grant)
            media = MEDIA_BIT if request.profile.endswith("+me") else 0
            states[grant.index] |= grant.slice_mask | media
        return tuple(sorted(grants, key=lambda g: (g.index, g.slice_mask)))

    def _slice(self, request: DeviceRequest, states: dict[int, int]) -> DeviceGrant | None:
        best: tuple[tuple[bool, int, int, int, int], DeviceGrant] | None = None
        for device in self.devices():
            table = table_for(device.kind, device.memory_bytes)
            profile = table.find(request.profile) if table else None
            usable = self.blocks[device.index] == (0 if _only_slices(device) else 100)
            usable = usable and (device.mig or device.mig_dynamic)
            if table is None or profile is None or not usable:
                continue
            if request.kind not in ("", device.kind):
                continue
            state = states[device.index]
            if profile.media and state & MEDIA_BIT:
                continue
            starts = legal_starts(table, profile, _layout(device))
            for order, start in enumerate(starts):
                mask = profile.mask(start)
                if mask & state:
                    continue
                growth = _unusable(table, device, state | mask) - _unusable(table, device, state)
                anew = device.mig_dynamic and not state
                key = (anew, growth, -state.bit_count(), device.index, order)
                grant = DeviceGrant(device.index, slice_mask=mask, profile=profile.name)
                if best is None or key < best[0]:
                    best = key, grant
        return best[1] if best else None


def _unusable(table: MigTable, device: Device, state: int) -> int:
    """F: free slices that a profile cannot use, summed over the profiles without media engine."""
    whole = (1 << table.slices) - 1
    free = whole & ~state
    lost = 0
    for profile in table.profiles:
        if not profile.media:
            lost += (free & ~_reach(table, profile, device, free)).bit_count()
    return lost


def _reach(table: MigTable, profile: Profile, device: Device, free: int) -> int:
    reach = 0
    for start in legal_starts(table, profile, _layout(device)):
        mask = profile.mask(start)
        reach |= mask if mask & free == mask else 0
    return reach


def _blocks(request: DeviceRequest, device: Device) -> int:
    if not request.memory_bytes:
        return request.blocks
    return -(-100 * request.memory_bytes // device.memory_bytes)


def best_fit(slow: SlowNode, shape: TaskShape) -> int | None:
    """The score of best fit, None when the task does not fit."""
    grants = slow.grants(shape)
    if grants is None:
        return None
    total = _thousandths(slow.cpu - shape.cpu_milli, slow.cpu_cap)
    total += _thousandths(slow.memory - shape.memory_bytes, slow.memory_cap)
    if shape.device is None:
        return total + (len(slow.devices()) << 20)
    return total + _device_terms(slow, shape.device, grants)


def _device_terms(slow: SlowNode, request: DeviceRequest, grants: tuple[DeviceGrant, ...]) -> int:
    untouched = {d.index for d in slow.devices() if _untouched(slow, d)}
    left = len(untouched - {grant.index for grant in grants}) << 11
    if request.whole:
        return left
    if not request.profile:
        free = slow.blocks[grants[0].index] - grants[0].blocks
        broken = grants[0].index in untouched and free > 0
        return left + (free << 17) + (broken << 25)
    return left + _slice_terms(slow, request)


def _slice_terms(slow: SlowNode, request: DeviceRequest) -> int:
    states, lost, free, broken = dict(slow.slices), 0, 0, 0
    for _ in range(request.count):
        grant = slow._slice(request, states)
        assert grant is not None
        device = next(d for d in slow.devices() if d.index == grant.index)
        table = table_for(device.kind, device.memory_bytes)
        assert table is not None
        before = states[grant.index]
        broken += device.mig_dynamic and before == 0
        media = MEDIA_BIT if request.profile.endswith("+me") else 0
        states[grant.index] |= grant.slice_mask | media
        after = states[grant.index]
        lost += _unusable(table, device, after) - _unusable(table, device, before)
        free += 12 * (8 - (after & 255).bit_count())
    return (lost << 24) + (free // request.count << 17) + (broken << 25)


def _only_slices(device: Device) -> bool:
    return device.mig and not device.mig_dynamic


def _layout(device: Device) -> Layout:
    return () if device.mig_dynamic else layout_of(device)


def _untouched(slow: SlowNode, device: Device) -> bool:
    if _only_slices(device):
        return slow.blocks[device.index] == 0 and slow.slices[device.index] == 0
    return slow.blocks[device.index] == 100 and slow.slices[device.index] == 0


def _thousandths(left: int, cap: int) -> int:
    return int(left * (1000.0 / cap)) if cap > 0 else 0


def in_order(jobs: tuple[PendingJob, ...]) -> list[PendingJob]:
    return sorted(jobs, key=lambda job: (-job.priority, job.submitted_at, job.id))
