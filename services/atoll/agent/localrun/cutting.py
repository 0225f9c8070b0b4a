"""Cuts devices into MIG instances, and joins them again, as the task that starts needs it.

Only devices that may be handed out either way are touched, and of those only what nobody
holds: a task makes of its devices what it was given, and nothing is undone when it ends.
So there is nothing to remember: what is there is looked at each time, and done is done.
"""

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from atoll.agent.localrun.devices import QUERY, nvidia_smi, parse_query, with_instances
from atoll.core.model.inventory import Device, NodeInventory
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.resources import DeviceGrant

_ROW: Final = re.compile(r"\|\s+(\d+)\s+MIG (\S+)\s+\d+\s+(\d+)\s+(\d+):(\d+)\s+\|")
_ONE_AT_A_TIME: Final = threading.Lock()


class CannotCut(OSError):
    """A device could not be made what a task was given."""


class Cut(Protocol):
    """Makes devices what tasks were given. Blocks."""

    def __call__(self, node: NodeInventory, tasks: Iterable[TaskPlacement]) -> NodeInventory:
        """The node with the instances that the tasks have; raises CannotCut."""
        ...


def cut_found(node: NodeInventory, tasks: Iterable[TaskPlacement]) -> NodeInventory:
    """By nvidia-smi."""
    return _with(node, tasks, _made)


def cut_declared(node: NodeInventory, tasks: Iterable[TaskPlacement]) -> NodeInventory:
    """Devices that a file declares are only said to be cut."""
    return _with(node, tasks, _named)


class _Make(Protocol):
    def __call__(self, device: Device, grants: Sequence[DeviceGrant]) -> Device: ...


def _with(node: NodeInventory, tasks: Iterable[TaskPlacement], make: _Make) -> NodeInventory:
    grants = [grant for task in tasks for grant in task.devices]
    devices = []
    for device in node.devices:
        mine = [grant for grant in grants if grant.index == device.index]
        devices.append(make(device, mine) if mine and device.mig_dynamic else device)
    return replace(node, devices=tuple(devices))


def _named(device: Device, grants: Sequence[DeviceGrant]) -> Device:
    who = device.uuid or str(device.index)
    wanted = sorted((_start(grant), grant.profile) for grant in grants if grant.slice_mask)
    names = tuple((profile, start, f"MIG-{who}/{profile}/{start}") for start, profile in wanted)
    return replace(device, mig_instances=names)


def _made(device: Device, grants: Sequence[DeviceGrant]) -> Device:
    with _ONE_AT_A_TIME:
        sliced = [grant for grant in grants if grant.slice_mask]
        if not sliced:
            _join(device.index)
            return device
        _switch(device.index, on=True)
        _clear(device.index, sliced)
        for grant in _missing(device.index, sliced):
            wanted = f"{grant.profile}:{_start(grant)}"
            nvidia_smi("mig", "-i", str(device.index), "-cgi", wanted, "-C")
        for grant in _missing(device.index, sliced):
            raise CannotCut(f"device {device.index} has no {grant.profile} at {_start(grant)}")
        (cut,) = with_instances([device], nvidia_smi("-L"), nvidia_smi("mig", "-lgi"))
        return cut


def _join(index: int) -> None:
    for instance in _instances(index):
        _destroy(instance)
    _switch(index, on=False)


def _switch(index: int, *, on: bool) -> None:
    if _is_on(index) is not on:
        nvidia_smi("-i", str(index), "-mig", str(int(on)))
        if _is_on(index) is not on:
            raise CannotCut(f"the mode of device {index} cannot be changed now")


def _is_on(index: int) -> bool:
    listing = nvidia_smi(f"--query-gpu={QUERY}", "--format=csv,noheader,nounits")
    return any(device.mig for device in parse_query(listing) if device.index == index)


def _clear(index: int, grants: Sequence[DeviceGrant]) -> None:
    """Destroy what ended tasks left where others begin now."""
    wanted, mask = _places(grants), 0
    for grant in grants:
        mask |= grant.slice_mask
    for instance in _instances(index):
        if instance.mask & mask and (instance.profile, instance.start) not in wanted:
            _destroy(instance)


def _missing(index: int, grants: Sequence[DeviceGrant]) -> list[DeviceGrant]:
    there = {(instance.profile, instance.start) for instance in _instances(index)}
    return [grant for grant in grants if (grant.profile, _start(grant)) not in there]


class _Instance(NamedTuple):
    device: int
    profile: str
    number: int
    start: int
    mask: int


def _instances(index: int) -> Iterator[_Instance]:
    for line in nvidia_smi("mig", "-lgi").splitlines():
        if (row := _ROW.match(line)) and int(row[1]) == index:
            start, size = int(row[4]), int(row[5])
            yield _Instance(index, row[2], int(row[3]), start, ((1 << size) - 1) << start)


def _destroy(instance: _Instance) -> None:
    which = ("mig", "-i", str(instance.device), "-gi", str(instance.number))
    nvidia_smi(*which, "-dci")
    nvidia_smi(*which, "-dgi")


def _places(grants: Iterable[DeviceGrant]) -> set[tuple[str, int]]:
    return {(grant.profile, _start(grant)) for grant in grants}


def _start(grant: DeviceGrant) -> int:
    """The first memory slice of a granted one."""
    return (grant.slice_mask & -grant.slice_mask).bit_length() - 1
