"""Turns typical tasks and a policy's constants into the tables that the loss is read from."""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.loss_kernels import (
    CONSTANTS,
    CRUMB_BLOCKS,
    CRUMBS,
    FEED,
    FINE,
    FRAGMENTS,
    HOLES,
    QUANTUM,
    STRAND,
    STRANDS,
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
    steps = np.unique(typical.cpu[typical.devices > 0])
    groups, runs = _runs(typical, steps)
    return LossTables(
        constants=_constants(policy),
        cpu=steps,
        devices=groups[:, 0].copy(),
        blocks=groups[:, 1].copy(),
        runs=runs,
        hole=_holes(typical, policy.patience),
    )


def _constants(policy: Loss) -> NDArray[np.int64]:
    constants = np.zeros(CONSTANTS, np.int64)
    constants[FRAGMENTS] = round(policy.fragments * WEIGHT)
    constants[HOLES] = round(policy.holes * WEIGHT)
    constants[CRUMBS] = round(policy.crumbs * WEIGHT)
    constants[CRUMB_BLOCKS] = policy.crumb_blocks
    constants[QUANTUM] = max(1, round(policy.quantum * WEIGHT * FINE))
    constants[FEED : FEED + STRANDS] = 1
    for place, strand in enumerate(policy.strands):
        constants[STRAND + place] = round(strand.weight * WEIGHT)
        constants[FEED + place] = strand.cpu_milli
    constants[USED] = policy != Loss()
    return constants


def _popularity(typical: Typical) -> NDArray[np.float64]:
    share: NDArray[np.float64] = typical.number / max(1, typical.number.sum())
    return share


def _runs(
    typical: Typical, steps: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    share, kinds = _popularity(typical), typical.blocks.shape[1]
    needs = {
        (int(typical.devices[task]), int(typical.blocks[task, kind]))
        for task, kind in np.argwhere(typical.blocks > 0)
    }
    groups = np.array(sorted(needs), np.int64).reshape(-1, 2)
    runs = np.zeros((max(1, kinds), len(steps) + 1, len(groups)))
    for task, kind in np.argwhere(typical.blocks > 0):
        need = [typical.devices[task], typical.blocks[task, kind]]
        group = int(np.flatnonzero((groups == need).all(axis=1))[0])
        first = int(np.searchsorted(steps, typical.cpu[task])) + 1
        runs[kind, first:, group] += share[task]
    return groups, np.floor(runs * FINE).astype(np.int64)


def _holes(typical: Typical, patience: float) -> NDArray[np.int64]:
    """What is left of a hole that tasks which fit fill one after another, each by its chance."""
    share, kinds = _popularity(typical), typical.blocks.shape[1]
    sizes = np.arange(BLOCKS_PER_DEVICE + 1)
    hole = np.zeros((max(1, kinds), len(sizes)), np.int64)
    for kind in range(kinds):
        chance = np.zeros(len(sizes))
        np.add.at(chance, typical.blocks[:, kind], share * typical.devices)
        filled = np.zeros(len(sizes))
        for size in sizes[1:]:
            parts, chances = sizes[1 : size + 1], chance[1 : size + 1]
            if chances.any():
                fill = (chances * (parts + filled[size - parts])).sum()
                filled[size] = fill / (chances.sum() + patience)
        hole[kind] = np.floor((sizes - filled) * FINE)
    return hole
