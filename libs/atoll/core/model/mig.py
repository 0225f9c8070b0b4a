"""MIG: the profiles of every kind of device, and the slices that they may take.

A device is a mask of memory slices; its compute slices can never be short when
the legal starts are kept. A profile with a media engine (`+me`) fits once per
device, so the state of a device is nine bits: eight slices and that engine.
"""

import re
from dataclasses import dataclass
from typing import Final

from atoll.core.model.resources import ANY_KIND

MEDIA_BIT: Final = 256
UNITS_PER_BLOCK: Final = 56
"""Quota counts 1/56 block, in which both 1/7 and 1/8 of a device are whole numbers."""
UNITS_PER_DEVICE: Final = 100 * UNITS_PER_BLOCK


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of partition: `slices` memory slices from one of `starts`, the preferred first."""

    name: str
    compute: int
    slices: int
    starts: tuple[int, ...]
    media: bool = False

    @property
    def memory_bytes(self) -> int:
        """What its name promises, in GiB."""
        return int(self.name.partition(".")[2].partition("gb")[0]) << 30

    def mask(self, start: int) -> int:
        """Bits of the memory slices taken from `start` on."""
        return ((1 << self.slices) - 1) << start


@dataclass(frozen=True, slots=True)
class MigTable:
    """How devices of one kind and memory can be cut."""

    family: str
    memory_gb: int
    compute: int
    """Compute slices of a whole device."""
    slices: int
    """Memory slices of a whole device."""
    profiles: tuple[Profile, ...]

    def find(self, name: str) -> Profile | None:
        """The profile called `name`, such as `1g.10gb`."""
        return next((p for p in self.profiles if p.name == name), None)

    def smallest(self, memory_bytes: int) -> Profile | None:
        """The smallest profile without a media engine that has so much memory."""
        fitting = [p for p in self.profiles if not p.media and p.memory_bytes >= memory_bytes]
        return min(fitting, key=lambda p: (p.slices, p.compute), default=None)

    def charge(self, profile: Profile) -> int:
        """max(compute share, memory share) of a device in 1/56 blocks, rounded up."""
        compute = -(-profile.compute * UNITS_PER_DEVICE // self.compute)
        memory = -(-profile.slices * UNITS_PER_DEVICE // self.slices)
        return max(compute, memory)


def _seven_slices(family: str, memory_gb: int, gb: tuple[int, ...]) -> MigTable:
    one, double, two, three, four, seven = gb
    first = (6, 4, 5, 0, 1, 2, 3)
    return MigTable(
        family,
        memory_gb,
        compute=7,
        slices=8,
        profiles=(
            Profile(f"1g.{one}gb", 1, 1, first),
            Profile(f"1g.{one}gb+me", 1, 1, first, media=True),
            Profile(f"1g.{double}gb", 1, 2, (6, 4, 0, 2)),
            Profile(f"2g.{two}gb", 2, 2, (4, 2, 0)),
            Profile(f"3g.{three}gb", 3, 4, (4, 0)),
            Profile(f"4g.{four}gb", 4, 4, (0,)),
            Profile(f"7g.{seven}gb", 7, 8, (0,)),
        ),
    )


def _four_slices(family: str, memory_gb: int, gb: tuple[int, ...]) -> MigTable:
    one, two, four = gb
    return MigTable(
        family,
        memory_gb,
        compute=4,
        slices=4,
        profiles=(
            Profile(f"1g.{one}gb", 1, 1, (3, 2, 0, 1)),
            Profile(f"1g.{one}gb+me", 1, 1, (3, 2, 0, 1), media=True),
            Profile(f"2g.{two}gb", 2, 2, (2, 0)),
            Profile(f"4g.{four}gb", 4, 4, (0,)),
        ),
    )


TABLES: Final = (
    _seven_slices("A100", 40, (5, 10, 10, 20, 20, 40)),
    _seven_slices("A100", 80, (10, 20, 20, 40, 40, 80)),
    _seven_slices("H100", 80, (10, 20, 20, 40, 40, 80)),
    _seven_slices("H200", 141, (18, 35, 35, 71, 71, 141)),
    _seven_slices("B200", 180, (23, 45, 45, 90, 90, 180)),
    _four_slices("A30", 24, (6, 12, 24)),
)
ALL_PROFILES: Final = tuple(sorted({p.name for table in TABLES for p in table.profiles}))
PROFILE_INDEX: Final = {name: index for index, name in enumerate(ALL_PROFILES)}


def table_for(kind: str, memory_bytes: int) -> MigTable | None:
    """The table of a device by its kind's words (`NVIDIA-H100-80GB`) and the nearest memory."""
    words = _words(kind)
    found = [table for table in TABLES if table.family in words]
    return min(found, key=lambda t: abs(t.memory_gb * 10**9 - memory_bytes), default=None)


def profiles_with(memory_bytes: int, *, kind: str) -> tuple[str, ...]:
    """Of each table of a kind the smallest profile with so much memory, the smallest first.

    `10gb` in a profile's name counts as 10 GiB: it is what people ask for when they mean it.
    """
    words = _words(kind)
    tables = (table for table in TABLES if kind == ANY_KIND or table.family in words)
    found = ((p, t) for t in tables if (p := t.smallest(memory_bytes)) is not None)
    sizes = {profile.name: profile.memory_bytes for profile, _ in found}
    return tuple(sorted(sizes, key=lambda name: (sizes[name], name)))


def _words(kind: str) -> set[str]:
    return set(re.split(r"[^A-Z0-9]+", kind.upper()))
