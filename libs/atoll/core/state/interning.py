"""Small numbers for values that repeat, so that arrays can hold them."""

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np

from atoll.core.model.inventory import Device
from atoll.core.state.columns import (
    MODE_BLOCKS,
    MODE_EITHER,
    MODE_MIG,
    MODE_NONE,
    Cuts,
    Models,
)
from atoll.core.state.mig import (
    ALL_PROFILES,
    PROFILE_INDEX,
    Layout,
    MigTable,
    layout_of,
    table_for,
)
from atoll.core.state.mig_states import state_tables

K = TypeVar("K", bound=Hashable)
Labels = tuple[tuple[str, str], ...]
ModelKey = tuple[str, int, int, Layout]
"""Kind, memory, mode and static layout."""
CutKey = tuple[MigTable, Layout]


class Interner(Generic[K]):
    """Numbers values in the order in which they come; numbers never decide anything."""

    def __init__(self) -> None:
        self.number: dict[K, int] = {}
        self.values: list[K] = []

    def __call__(self, value: K) -> int:
        """The value's number, a new one if it has none yet."""
        known = self.number.get(value)
        if known is None:
            known = self.number[value] = len(self.values)
            self.values.append(value)
        return known

    def __len__(self) -> int:
        return len(self.values)


class ModelTable:
    """Distinct devices. Model 0 is a place without a usable device."""

    def __init__(self) -> None:
        self.kinds: Interner[str] = Interner()
        self._models: Interner[ModelKey | None] = Interner()
        self._cuts: Interner[CutKey | None] = Interner()
        self._models(None)
        self._cuts(None)
        self._arrays: tuple[Models, Cuts] | None = None

    def number(self, device: Device) -> int:
        """The model of a device; 0 when it is broken."""
        if not device.healthy:
            return 0
        mode = MODE_MIG if device.mig else MODE_BLOCKS
        mode = MODE_EITHER if device.mig_dynamic else mode
        layout = layout_of(device) if device.mig_instances and mode != MODE_EITHER else ()
        known = len(self._models)
        model = self._models((device.kind, device.memory_bytes, mode, layout))
        if model == known:
            self._arrays = None
        return model

    def arrays(self) -> tuple[Models, Cuts]:
        """Models and the MIG tables that they point to; never changed afterwards."""
        if self._arrays is None:
            self._arrays = self._build()
        return self._arrays

    def _build(self) -> tuple[Models, Cuts]:
        count = len(self._models)
        models = Models(
            kind=np.full(count, -2, np.int32),
            memory=np.zeros(count, np.int64),
            mode=np.full(count, MODE_NONE, np.int8),
            cut=np.zeros(count, np.int32),
        )
        for number, key in enumerate(self._models.values):
            if key is not None:
                self._fill(models, number, key)
        return models, self._build_cuts()

    def _fill(self, models: Models, number: int, key: ModelKey) -> None:
        kind, memory, mode, layout = key
        models.kind[number] = self.kinds(kind)
        models.memory[number] = memory
        models.mode[number] = mode
        table = table_for(kind, memory) if mode & MODE_MIG else None
        models.cut[number] = self._cuts((table, layout)) if table else 0

    def _build_cuts(self) -> Cuts:
        empty = state_tables(_NO_PROFILES)
        tables = [state_tables(*key) if key else empty for key in self._cuts.values]
        charge = np.zeros((len(tables), len(ALL_PROFILES)), np.int32)
        for row, key in enumerate(self._cuts.values):
            for profile in key[0].profiles if key else ():
                charge[row, PROFILE_INDEX[profile.name]] = key[0].charge(profile) if key else 0
        return Cuts(
            start=np.stack([table.start for table in tables]),
            growth=np.stack([table.growth for table in tables]),
            mask=np.stack([table.mask for table in tables]),
            charge=charge,
        )


_NO_PROFILES = MigTable("", 0, compute=1, slices=0, profiles=())
