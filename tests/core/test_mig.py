"""MIG: legal starts, preferences, and no two slices on top of each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.model.inventory import Device
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.mig import (
    MEDIA_BIT,
    PROFILE_INDEX,
    TABLES,
    UNITS_PER_DEVICE,
    MigTable,
    grant_units,
    layout_of,
    legal_starts,
    table_for,
)
from atoll.core.state.mig_states import NO_START, fragmentation, state_tables

GB = 10**9


def table(family: str, memory_gb: int) -> MigTable:
    found = table_for(family, memory_gb * GB)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "memory_gb", "smallest", "largest"),
    [
        ("A100", 40, "1g.5gb", "7g.40gb"),
        ("NVIDIA-A100-SXM4-80GB", 80, "1g.10gb", "7g.80gb"),
        ("H100", 80, "1g.10gb", "7g.80gb"),
        ("NVIDIA H200", 141, "1g.18gb", "7g.141gb"),
        ("B200", 180, "1g.23gb", "7g.180gb"),
        ("A30", 24, "1g.6gb", "4g.24gb"),
    ],
)
def test_a_device_has_the_profiles_of_its_kind_and_memory(
    kind: str, memory_gb: int, smallest: str, largest: str
) -> None:
    found = table(kind, memory_gb)
    assert found.find(smallest)
    assert found.find(largest)


def test_a_kind_without_mig_has_no_table() -> None:
    assert table_for("V100", 32 * GB) is None
    assert table_for("RTX-A3000", 12 * GB) is None


def test_starts_are_the_published_ones() -> None:
    h100 = table("H100", 80)
    starts = {p.name: set(p.starts) for p in h100.profiles}
    assert starts == {
        "1g.10gb": set(range(7)),
        "1g.10gb+me": set(range(7)),
        "1g.20gb": {0, 2, 4, 6},
        "2g.20gb": {0, 2, 4},
        "3g.40gb": {0, 4},
        "4g.40gb": {0},
        "7g.80gb": {0},
    }


def test_a_whole_device_of_slices_charges_one_device() -> None:
    h100, a30 = table("H100", 80), table("A30", 24)
    charges = {p.name: h100.charge(p) for p in h100.profiles}
    assert 7 * charges["1g.10gb"] == 2 * charges["3g.40gb"] == UNITS_PER_DEVICE
    assert charges["7g.80gb"] == UNITS_PER_DEVICE
    quarter = a30.find("1g.6gb")
    assert quarter is not None
    assert 4 * a30.charge(quarter) == UNITS_PER_DEVICE


def test_a_grant_charges_what_its_profile_does_on_that_device() -> None:
    single = DeviceGrant(0, slice_mask=0b1, profile="1g.10gb")
    double = DeviceGrant(0, slice_mask=0b11, profile="1g.10gb")
    assert grant_units(single) == 800
    assert grant_units(double) == 1400
    assert grant_units(DeviceGrant(0, blocks=30)) == 30 * 56


def test_fragmentation_of_an_empty_device_is_the_slice_that_small_profiles_cannot_reach() -> None:
    empty = int(fragmentation(table("H100", 80))[0])
    # Slice 7 is out of reach of 1g; 2g and 4g leave 2 and 4 slices.
    assert empty == 1 + 0 + 2 + 0 + 4 + 0


def test_a_static_layout_leaves_only_its_own_partitions() -> None:
    device = Device(0, "H100", 80 * GB, mig=True, mig_instances=(("3g.40gb", 4, "a"),))
    h100 = table("H100", 80)
    tables = state_tables(h100, layout_of(device))
    assert tables.start[0, PROFILE_INDEX["3g.40gb"]] == 4
    assert tables.start[0, PROFILE_INDEX["1g.10gb"]] == NO_START
    assert tables.start[0b11110000, PROFILE_INDEX["3g.40gb"]] == NO_START


@given(st.sampled_from(TABLES), st.data())
def test_slices_are_legal_and_never_overlap(mig: MigTable, data: st.DataObject) -> None:
    tables = state_tables(mig)
    state, compute = 0, 0
    while True:
        profile = data.draw(st.sampled_from(mig.profiles))
        column = PROFILE_INDEX[profile.name]
        start = int(tables.start[state, column])
        if start == NO_START:
            free = [s for s in profile.starts if profile.mask(s) & state == 0]
            assert not free or (profile.media and state & MEDIA_BIT)
            return
        mask = int(tables.mask[state, column])
        assert start in legal_starts(mig, profile, ())
        assert mask & state == 0
        assert mask & ~MEDIA_BIT == profile.mask(start)
        state |= mask
        compute += profile.compute
        assert compute <= mig.compute
        assert state & ~MEDIA_BIT < 1 << mig.slices


@given(st.sampled_from(TABLES), st.integers(0, 255), st.data())
def test_the_best_start_is_the_one_with_the_least_growth(
    mig: MigTable, state: int, data: st.DataObject
) -> None:
    state &= (1 << mig.slices) - 1
    profile = data.draw(st.sampled_from(mig.profiles))
    cost = fragmentation(mig)
    growths = {
        start: int(cost[state | profile.mask(start)] - cost[state])
        for start in profile.starts
        if profile.mask(start) & state == 0
    }
    tables, column = state_tables(mig), PROFILE_INDEX[profile.name]
    start = int(tables.start[state, column])
    assert (start == NO_START) == (not growths)
    if growths:
        assert growths[start] == min(growths.values()) == tables.growth[state, column]
