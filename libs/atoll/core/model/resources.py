"""Amounts. Everything is an integer: milli-CPU, bytes, blocks (1 % of a device), slice masks."""

from dataclasses import dataclass
from typing import Final

BLOCKS_PER_DEVICE: Final = 100
ANY_KIND: Final = ""
"""A device request of this kind takes a device of any kind."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """Devices that one task needs.

    Exactly one of three forms:
    - whole devices: `count` >= 1, `blocks` == 100, no profile
    - a share of one device: `count` == 1, 1 <= `blocks` <= 99, no profile
    - MIG slices: `profile` such as `1g.10gb`, `count` of them, on one or more devices of the node
    `memory_bytes` > 0 asks for at least that much memory on the one device of a share; its blocks
    are then derived for each device (ceil(100 x memory / device memory)) and `blocks` is 0.
    """

    kind: str
    count: int
    blocks: int = BLOCKS_PER_DEVICE
    profile: str = ""
    memory_bytes: int = 0

    @property
    def whole(self) -> bool:
        """True when the task owns its devices alone."""
        return not self.profile and not self.memory_bytes and self.blocks == BLOCKS_PER_DEVICE


@dataclass(frozen=True, slots=True)
class TaskShape:
    """What one task takes from its one node. Equal shapes are interchangeable."""

    cpu_milli: int
    memory_bytes: int
    device: DeviceRequest | None = None
    labels: tuple[tuple[str, str], ...] = ()
    """Node labels that must match, sorted by key."""
    labels_not: tuple[tuple[str, str], ...] = ()
    """Node labels that must not be there, sorted; without a value: the key must not be."""


@dataclass(frozen=True, slots=True)
class DeviceGrant:
    """A share of one device given to one task. Either blocks or a slice mask, never both."""

    index: int
    """Position of the device on its node, from 0."""
    blocks: int = 0
    """1..100; 100 is the whole device."""
    slice_mask: int = 0
    """MIG: bits of the memory slices taken; 0 when `blocks` is used."""
    profile: str = ""
