"""What stands in the way of a booking, in the pool where it comes closest."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from atoll.core.engine.bookings.answers import Booked
from atoll.core.engine.bookings.diary import Diary
from atoll.core.engine.bookings.segment_kernels import View, pieces
from atoll.core.engine.bookings.wanted import Need, Pool, Sort
from atoll.core.model.ids import attempt_name
from atoll.core.model.reservation import Obstacle, ObstacleKind, What
from atoll.core.state.columns import ANY

MOST: Final = 10
_NOTHING: Final = View(1 << 62, False)
Span = tuple[float, float]


def obstacles(
    diary: Diary, pools: Sequence[Pool], what: What, *, span: Span, view: View
) -> tuple[Obstacle, ...]:
    """What holds what is needed in a span, the largest first; ten at most."""
    if not pools:
        return (_capacity("", 0, _missing(what)),)
    ever = [_lack(diary, pool, span=span, view=_NOTHING) for pool in pools]
    if min(ever) > 0:
        pool = pools[ever.index(min(ever))]
        return (_capacity(pool.name, min(ever), _too_large(pool, min(ever))),)
    able = [pool for pool, lack in zip(pools, ever, strict=True) if not lack]
    pool = min(able, key=lambda each: _lack(diary, each, span=span, view=view))
    found = tuple(_holders(diary, pool, span=span, view=view)[:MOST])
    told = "what is free of it lies in pieces that are too small"
    return found or (_capacity(pool.name, 0, told),)


def _lack(diary: Diary, pool: Pool, *, span: Span, view: View) -> int:
    """Units that a pool has too few of, over all its needs; 1 when they do not go together."""
    chooser = diary.chooser
    chooser.room(pool.rows, [span], view)
    lack = sum(max(0, _count(need) - int(chooser.free(need).sum())) for need in pool.needs)
    return lack or int(chooser.place(pool, [span], view) is None)


def _count(need: Need) -> int:
    return need.counted.need if need.sort is Sort.DOMAINS and need.counted else need.count


def _too_large(pool: Pool, lack: int) -> str:
    wanted = sum(map(_count, pool.needs))
    things = "units" if pool.needs[0].sort is Sort.UNITS else "nodes"
    where = pool.name or "what may be taken"
    return (
        f"{where} comes closest and has room for {wanted - lack:,} of {wanted:,} {things} at most"
    )


def _capacity(cluster: str, amount: int, message: str) -> Obstacle:
    return Obstacle(ObstacleKind.CAPACITY, "", "", cluster, amount, 0.0, message)


def _missing(what: What) -> str:
    if what.nodes is not None and what.nodes.names:
        return "a node that is named is not there, or takes no work"
    if what.domains is not None:
        return f"there is no such {what.domains.level}, or a part of it takes no work"
    return "no cluster that takes work has nodes of that sort"


def _holders(diary: Diary, pool: Pool, *, span: Span, view: View) -> list[Obstacle]:
    segs = diary.book.columns
    found = pieces(segs, diary.book.head, pool.rows, *span, view, _NOTHING)
    until = segs.soft if view.soft else segs.end
    amounts: dict[int, float] = defaultdict(float)
    ends: dict[int, float] = {}
    where: dict[int, str] = {}
    for seg in found.tolist():
        item = int(segs.item[seg])
        amounts[item] += _amount(diary, seg, pool.needs)
        ends[item] = max(ends.get(item, 0.0), float(until[seg]))
        where.setdefault(item, diary.terrain.cluster_of(int(segs.row[seg])))
    order = sorted((i for i in amounts if amounts[i] > 0), key=lambda i: (-amounts[i], i))
    return [
        _obstacle(diary, item, where[item], amount=max(1, round(amounts[item])), until=ends[item])
        for item in order
    ]


def _amount(diary: Diary, seg: int, needs: Sequence[Need]) -> float:
    """Devices of the kinds that are needed, or 1 for a node where nodes are."""
    segs, snapshot = diary.book.columns, diary.terrain.snapshot
    kinds = {need.kind for need in needs if need.sort is Sort.UNITS and need.counted}
    if len(kinds) < len({need.sort for need in needs}):
        return 1.0
    model = snapshot.nodes.model[int(segs.row[seg])]
    wanted = model > 0
    if ANY not in kinds:
        wanted &= np.isin(snapshot.hardware.models.kind[model], list(kinds))
    if segs.whole[seg]:
        return float(wanted.sum())
    blocks = segs.blocks[seg, : len(model)][wanted].sum() / 100
    return float(blocks + (segs.bits[seg, : len(model)][wanted] != 0).sum())


def _obstacle(diary: Diary, item: int, cluster: str, *, amount: int, until: float) -> Obstacle:
    end = until if np.isfinite(until) else 0.0
    if item < 0:
        held = diary.terrain.snapshot.running.holdings[-1 - item]
        name, queue = attempt_name(held.attempt), held.queue
        told = "until its requested end" if end else "and nobody can tell until when"
        message = f"run {name} of {queue} holds {amount:,} {told}"
        return Obstacle(ObstacleKind.RUN, name, queue, cluster, amount, end, message)
    holder = diary.owner(item)
    if isinstance(holder, Booked):
        owner = holder.queue
        whose = f" of {owner}" if owner else ""
        message = f"booking {holder.name}{whose} has {amount:,}"
        return Obstacle(ObstacleKind.BOOKING, holder.name, owner, cluster, amount, end, message)
    owner = str(holder.queues[0]) if holder.queues else ""
    message = f"a deadline that was guaranteed to {owner or 'a job'} needs {amount:,}"
    return Obstacle(ObstacleKind.GUARANTEE, holder.id, owner, cluster, amount, end, message)
