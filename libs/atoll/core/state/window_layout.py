"""Shares of windows by the rows of a node table."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from atoll.core.state.ragged import offsets, spans

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Shares(NamedTuple):
    """S shares of nodes with G grants of devices: those of share s begin at first_grant[s]."""

    window: Ints
    """Number of the window in its view."""
    node: Ints
    """Id, or row in a layout."""
    whole: Bools
    cpu: Ints
    memory: Ints
    first_grant: Ints
    device: Ints
    blocks: Ints
    bits: Ints
    """Slices with the media engine; 0 where `blocks` is used."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """N rows; shares of nodes that are not in the table are left out."""

    ids: Ints
    devices: int
    shares: Shares
    """By row, then by start."""
    first: Ints
    """(N + 1) shares of a row begin here."""
    firm: Floats
    """(N) the earliest start of a window that lends nothing; infinity for none."""
    lent: Floats
    """(N) the earliest start of one that lends."""

    def rows_of(self, windows: Bools) -> Ints:
        """Rows with a share of some windows (W), each once."""
        return np.unique(self.shares.node[windows[self.shares.window]])


def joined_shares(one: Shares, other: Shares, windows: int) -> Shares:
    """Shares of both; the others' windows are numbered from `windows` on."""
    moved = other._replace(
        window=other.window + windows, first_grant=other.first_grant[1:] + one.first_grant[-1]
    )
    return Shares._make(np.concatenate(pair) for pair in zip(one, moved, strict=True))


def layout(shares: Shares, ids: Ints, *, start: Floats, lends: Bools, devices: int) -> Layout:
    """The shares on rows; `ids` (N) rise. `start`, `lends`: (W)."""
    row = np.searchsorted(ids, shares.node)
    row[row == len(ids)] = 0
    known = np.flatnonzero(ids[row] == shares.node) if len(ids) else np.zeros(0, np.int64)
    order = known[np.lexsort((shares.window[known], row[known]))]
    here = _chosen(shares, order, row[order])
    counts = np.bincount(here.node, minlength=len(ids))
    begins, lending = start[here.window], lends[here.window]
    firm, lent = np.full((2, len(ids)), np.inf)
    np.minimum.at(firm, here.node[~lending], begins[~lending])
    np.minimum.at(lent, here.node[lending], begins[lending])
    return Layout(ids, devices, _narrow(here, devices), offsets(counts), firm, lent)


def _chosen(shares: Shares, chosen: Ints, row: Ints) -> Shares:
    grants = spans(shares.first_grant, chosen)
    return Shares(
        window=shares.window[chosen],
        node=row,
        whole=shares.whole[chosen],
        cpu=shares.cpu[chosen],
        memory=shares.memory[chosen],
        first_grant=offsets(np.diff(shares.first_grant)[chosen]),
        device=shares.device[grants],
        blocks=shares.blocks[grants],
        bits=shares.bits[grants],
    )


def _narrow(shares: Shares, devices: int) -> Shares:
    """Without devices that no node of the table has."""
    kept = shares.device < devices
    if kept.all():
        return shares
    of = np.repeat(np.arange(len(shares.node)), np.diff(shares.first_grant))
    counts = np.bincount(of[kept], minlength=len(shares.node))
    return shares._replace(
        first_grant=offsets(counts),
        device=shares.device[kept],
        blocks=shares.blocks[kept],
        bits=shares.bits[kept],
    )
