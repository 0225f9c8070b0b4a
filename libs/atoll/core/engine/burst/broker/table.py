"""Wants against offers: what fits where, and how much of an instance a job takes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.burst.broker.ground import Floats
from atoll.core.engine.burst.broker.parts import part_of
from atoll.core.model.burst import Offer
from atoll.core.model.burst_wants import Ask, Want
from atoll.core.model.resources import BLOCKS_PER_DEVICE

Bools = NDArray[np.bool_]
NOBODY = -1.0
"""Kind of an ask that is not there."""
AMOUNTS = 3
"""Blocks, milli-CPU, bytes of memory."""
NO_ASK = Ask()


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """W wants against O offers."""

    fits: Bools
    """(W, O) an instance holds the whole job."""
    parts: Floats
    """(W, O, AMOUNTS) of an instance, by the first alternative that fits; 1: all of it."""
    shares: Floats
    """(W, O) the largest part."""


def table_of(wants: Sequence[Want], offers: Sequence[Offer]) -> Table:
    """What fits where."""
    kinds = {"": 0.0}
    has = np.array([_amounts(offer) for offer in offers]).reshape(-1, AMOUNTS)
    kind = np.array([kinds.setdefault(offer.kind, float(len(kinds))) for offer in offers])
    fits = np.zeros((len(wants), len(offers)), dtype=bool)
    parts = np.zeros((len(wants), len(offers), AMOUNTS))
    for place in range(max((len(want.asks) for want in wants), default=0)):
        asked = np.array([_asked(want.asks, place, kinds) for want in wants])
        right = (asked[:, :1] == kind) | (asked[:, :1] == 0) | (asked[:, 1:2] == 0)
        right &= asked[:, :1] != NOBODY
        part = asked[:, None, 1:] / np.maximum(has, 1e-9)
        _spread(part, wants, offers, place=place)
        new = right & (largest(part) <= 1 + 1e-12) & ~fits
        parts[new] = part[new]
        fits |= new
    return Table(fits, parts, largest(parts))


def _spread(part: Floats, wants: Sequence[Want], offers: Sequence[Offer], *, place: int) -> None:
    """(W, O, AMOUNTS) in place, where an instance is several machines."""
    for column in (n for n, offer in enumerate(offers) if offer.nodes > 1):
        asks = [want.asks[place] if place < len(want.asks) else NO_ASK for want in wants]
        known = {ask: part_of(offers[column], ask) for ask in set(asks)}
        part[:, column] = [known[ask] for ask in asks]


def largest(parts: Floats) -> Floats:
    """(W, O) of (W, O, AMOUNTS)."""
    return np.asarray(np.maximum(np.maximum(parts[..., 0], parts[..., 1]), parts[..., 2]))


def _amounts(offer: Offer) -> tuple[float, float, float]:
    return (offer.devices * BLOCKS_PER_DEVICE, offer.cpu_milli, offer.memory_bytes)


def _asked(
    asks: Sequence[Ask], place: int, kinds: dict[str, float]
) -> tuple[float, float, float, float]:
    if place >= len(asks):
        return (NOBODY, 0.0, 0.0, 0.0)
    ask = asks[place]
    kind = kinds.setdefault(ask.kind, float(len(kinds)))
    return (kind, ask.blocks, ask.cpu_milli, ask.memory_bytes)
