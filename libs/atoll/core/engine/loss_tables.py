"""Turns typical tasks and a policy's constants into the tables that the loss is read from."""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.loss_kernels import (
    CONSTANTS,
    FEED,
    FINE,
    FRAGMENTS,
    HOLES,
    OPEN,
    QUANTUM,
    STRAND,
    USED,
    LossTables,
)
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.policies.interfaces import Loss
from atoll.core.state.typical import Typical

WEIGHT: Final = 256
"""Parts of a weight."""


@lru_cache(maxsize=8)
def loss_tables(typical: Typical, policy: Loss) -> LossTables:
    """Tables for the kernels; the same object for the same table of typical tasks."""
    steps = np.unique(typical.cpu[: typical.covering][typical.devices[: typical.covering] > 0])
    groups, runs = _runs(typical, steps)
    return LossTables(
        constants=_constants(policy, typical.cpu_scarcity),
        cpu=steps,
        devices=groups[:, 0].copy(),
        blocks=groups[:, 1].copy(),
        runs=runs,
        hole=_holes(typical, steps, policy),
    )


def _constants(policy: Loss, scarcity: float) -> NDArray[np.int64]:
    ramp = (scarcity - policy.scarce_from) / (policy.scarce_to - policy.scarce_from)
    scarce = min(1.0, max(0.0, ramp))
    strands = ((policy.strand, 1.0), (policy.scarce_strand, scarce))
    constants = np.zeros(CONSTANTS, np.int64)
    constants[FRAGMENTS] = _fixed(policy.fragments + scarce * policy.scarce_fragments)
    constants[HOLES] = _fixed(policy.holes)
    constants[OPEN] = _fixed(policy.openness)
    constants[QUANTUM] = max(1, _fixed(policy.quantum * FINE))
    for place, (strand, factor) in enumerate(strands):
        constants[STRAND + place] = _fixed(strand.weight * factor)
        constants[FEED + place] = strand.cpu_milli
    constants[USED] = policy != Loss()
    return constants


def _fixed(weight: float) -> int:
    return round(weight * WEIGHT)


def _popularity(number: NDArray[np.int64]) -> NDArray[np.float64]:
    share: NDArray[np.float64] = number / max(1, number.sum())
    return share


def _runs(
    typical: Typical, steps: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    share, kinds = _popularity(typical.number[: typical.covering]), typical.blocks.shape[1]
    able = np.argwhere(typical.blocks[: typical.covering] > 0)
    needs = {(int(typical.devices[task]), int(typical.blocks[task, kind])) for task, kind in able}
    groups = np.array(sorted(needs), np.int64).reshape(-1, 2)
    runs = np.zeros((max(1, kinds), len(steps) + 1, len(groups)))
    for task, kind in able:
        need = [typical.devices[task], typical.blocks[task, kind]]
        group = int(np.flatnonzero((groups == need).all(axis=1))[0])
        first = int(np.searchsorted(steps, typical.cpu[task])) + 1
        runs[kind, first:, group] += share[task]
    return groups, np.floor(runs * FINE).astype(np.int64)


def _holes(typical: Typical, steps: NDArray[np.int64], policy: Loss) -> NDArray[np.int64]:
    """What is left of a hole that tasks which fit fill one after another, each by its chance."""
    kinds = typical.blocks.shape[1]
    hole = np.zeros((max(1, kinds), len(steps) + 1, len(_SIZES)))
    for kind in range(kinds):
        chance = _chance(typical, kind, typical.cpu >= 0)
        wanted = _weighed(chance, policy)
        hole[kind] = _SIZES - _filled(wanted, policy)
        for step, cpu in enumerate([0, *steps.tolist()] if policy.feeding else []):
            able = _chance(typical, kind, typical.cpu <= cpu) / np.where(chance > 0, chance, 1)
            fed = _SIZES - _filled(wanted * able, policy)
            hole[kind, step] += policy.feeding * (fed - hole[kind, step])
    hole[:, :, BLOCKS_PER_DEVICE] += policy.opening
    fixed: NDArray[np.int64] = np.floor(hole * FINE).astype(np.int64)
    return fixed


def _chance(typical: Typical, kind: int, able: NDArray[np.bool_]) -> NDArray[np.float64]:
    chance = np.zeros(len(_SIZES))
    popularity = _popularity(typical.number) * typical.devices * able
    np.add.at(chance, typical.blocks[:, kind], popularity)
    chance[0] = 0.0
    return chance


def _weighed(chance: NDArray[np.float64], policy: Loss) -> NDArray[np.float64]:
    weighed = chance.copy()
    weighed[BLOCKS_PER_DEVICE] *= policy.wholes
    weighed[weighed > 0] **= policy.evenness
    return weighed


def _filled(chance: NDArray[np.float64], policy: Loss) -> NDArray[np.float64]:
    filled = np.zeros(len(_SIZES))
    for size in _SIZES[1:]:
        parts, rest = _SIZES[1 : size + 1], size - _SIZES[1 : size + 1]
        chances = chance[1 : size + 1] * np.exp(-policy.keenness * (rest - filled[rest]))
        if chances.any():
            fill = (chances * (parts + filled[rest])).sum()
            filled[size] = fill / (chances.sum() + policy.patience)
    return filled


_SIZES: Final = np.arange(BLOCKS_PER_DEVICE + 1)
