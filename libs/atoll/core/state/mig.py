"""MIG: which slices of a device are taken, may be taken, and what they cost."""

from functools import lru_cache

from atoll.core.model.inventory import Device
from atoll.core.model.mig import ALL_PROFILES as ALL_PROFILES
from atoll.core.model.mig import MEDIA_BIT as MEDIA_BIT
from atoll.core.model.mig import PROFILE_INDEX as PROFILE_INDEX
from atoll.core.model.mig import TABLES as TABLES
from atoll.core.model.mig import UNITS_PER_BLOCK as UNITS_PER_BLOCK
from atoll.core.model.mig import UNITS_PER_DEVICE as UNITS_PER_DEVICE
from atoll.core.model.mig import MigTable as MigTable
from atoll.core.model.mig import Profile as Profile
from atoll.core.model.mig import table_for as table_for
from atoll.core.model.resources import DeviceGrant

Layout = tuple[tuple[str, int], ...]
"""Static partitions as sorted (profile, start); empty: any legal placement."""


def layout_of(device: Device) -> Layout:
    """A device's static partitions as sorted (profile, start); empty: any legal placement."""
    return tuple(sorted((profile, start) for profile, start, _ in device.mig_instances))


def legal_starts(table: MigTable, profile: Profile, layout: Layout) -> tuple[int, ...]:
    """Starts that table and static layout allow, the preferred first."""
    if not layout:
        return profile.starts
    return tuple(start for start in profile.starts if (profile.name, start) in layout)


def grant_bits(profile: str, slice_mask: int) -> int:
    """Bits of the device state that a granted slice holds."""
    return slice_mask | (MEDIA_BIT if profile.endswith("+me") else 0)


@lru_cache(maxsize=4096)
def grant_units(grant: DeviceGrant) -> int:
    """What a granted share costs of a queue's limit, in 1/56 block."""
    if not grant.slice_mask:
        return grant.blocks * UNITS_PER_BLOCK
    slices = grant.slice_mask.bit_count()
    tables = (t for t in TABLES if (p := t.find(grant.profile)) and p.slices == slices)
    table = next(tables, None)
    profile = table.find(grant.profile) if table else None
    return table.charge(profile) if table and profile else UNITS_PER_DEVICE
