"""What a booking is of when some of it was given back: nothing replaces that."""

from collections.abc import Sequence
from dataclasses import replace

from atoll.core.engine.bookings.answers import Booked
from atoll.core.engine.bookings.terrain import Terrain
from atoll.core.engine.bookings.units_held import open_needs, pool_around
from atoll.core.engine.bookings.wanted import Pool, Sort, amounts_of, pools_of
from atoll.core.model.reservation import Amount, Parts, What, WholeNodes


def what_is_left(terrain: Terrain, booked: Booked, parts: Parts) -> What:
    """What a booking is of when it has `parts` left; what failed of it is wanted still."""
    what = booked.what
    if what.domains is not None or (what.nodes is not None and what.nodes.names):
        names = (f"{part.cluster}/{share.node_name}" for part in parts for share in part.shares)
        return What(nodes=WholeNodes(names=tuple(sorted(names))))
    if what.nodes is not None:
        fewer = _nodes(booked.parts) - _nodes(parts)
        return replace(what, nodes=replace(what.nodes, count=max(1, what.nodes.count - fewer)))
    pools = pools_of(terrain, what, nobody=booked.owners.nobody)
    pool = pool_around(terrain, pools, booked.parts)
    amounts = () if pool is None else _fewer(terrain, booked, parts, pool=pool)
    # Of nothing at all: what is left is but nodes of a part of a cluster.
    return _as_amounts(what, amounts) if amounts else what


def _fewer(terrain: Terrain, booked: Booked, parts: Parts, *, pool: Pool) -> tuple[Amount, ...]:
    had = {id(need): count for need, count in open_needs(terrain, pool, booked.parts)}
    lacks = {id(need): count for need, count in open_needs(terrain, pool, parts)}
    needs = [need for need in pool.needs if need.sort is Sort.UNITS]
    every = zip(amounts_of(terrain, booked.what), needs, strict=True)
    left = [
        replace(amount, count=amount.count - lacks.get(id(need), 0) + had.get(id(need), 0))
        for amount, need in every
    ]
    return tuple(amount for amount in left if amount.count > 0)


def _as_amounts(what: What, amounts: Sequence[Amount]) -> What:
    split = what.split or (bool(what.percent) and len(what.clusters) > 1)
    return What(amounts=tuple(amounts), clusters=what.clusters, split=split)


def _nodes(parts: Parts) -> int:
    return sum(len(part.shares) for part in parts)
