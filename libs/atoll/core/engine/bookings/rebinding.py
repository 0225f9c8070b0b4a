"""Another place for what of an occurrence failed; what still works of one that runs stays put."""

from dataclasses import dataclass, replace

from atoll.core.engine.bookings.answers import Booked, Rebound
from atoll.core.engine.bookings.diary import Diary
from atoll.core.engine.bookings.fitting import Fitter, views
from atoll.core.engine.bookings.places import Place
from atoll.core.engine.bookings.terrain import Terrain
from atoll.core.engine.bookings.units_held import devices_of, open_needs, pool_around
from atoll.core.engine.bookings.wanted import Need, Pool, pools_of
from atoll.core.model.booking import NodeShare
from atoll.core.model.ids import ClusterName, NodeId
from atoll.core.model.reservation import Part, Parts

Span = tuple[float, float]


def rebind(diary: Diary, booked: Booked, *, now: float) -> Rebound:
    """The place of a window when everything of it that failed is replaced as far as possible."""
    kept = _kept(diary.terrain, booked.parts, nobody=booked.owners.nobody)
    if kept == booked.parts and not booked.missing:
        return Rebound(booked.parts, 0, False)
    lost = _Lost(diary, booked, kept, (max(now, booked.start), booked.end))
    if booked.pinned and booked.parts:
        return lost.waiting("its nodes are pinned")
    if (parts := lost.anew()) is not None:
        return lost.moved(parts)
    if _has_its_nodes(booked) and booked.parts:
        return lost.waiting("nothing can replace them")
    parts = lost.patched()
    if missing := lost.missing(parts):
        return Rebound(parts, missing, True, f"{missing} failed, and nothing can replace them")
    return lost.moved(parts)


@dataclass(frozen=True, slots=True)
class _Lost:
    """A window, what is left of it, and when others must be free in its stead."""

    diary: Diary
    booked: Booked
    kept: Parts
    span: Span

    def moved(self, parts: Parts) -> Rebound:
        """Complete, whether anything failed just now or came back."""
        failed = self.booked.parts not in (self.kept, parts)
        return Rebound(parts, 0, True, "moved: nodes failed" if failed else "")

    def waiting(self, why: str) -> Rebound:
        """The same place: what failed of it is missing until it is back."""
        missing = _size(self.booked.parts) - _size(self.kept)
        told = f"{missing} failed, and {why}" if missing else ""
        return Rebound(self.booked.parts, missing, True, told)

    def anew(self) -> Parts | None:
        """All of it elsewhere, as far as need be; not while it runs."""
        if self.booked.running:
            return None
        chooser = self.diary.chooser
        chooser.prefer(self.diary.terrain.rows_of(self.kept))
        with self.diary.trial([self.booked.id]):
            fit = Fitter(chooser, self._pools()).one(self.span, views(None))
        return None if fit is None else fit.parts

    def patched(self) -> Parts:
        """What is left, and as much beside it as can be had."""
        pool = self._pool()
        if pool is None:
            return self.kept
        parts = self.kept
        with self.diary.trial([self.booked.id]) as trial:
            trial.enter(replace(self.booked, parts=self.kept))
            for need, count in open_needs(self.diary.terrain, pool, self.kept):
                place = self._most(need, count)
                if place is not None:
                    trial.enter(replace(self.booked, parts=place.parts))
                    parts = _joined(parts, place.parts)
        return parts

    def missing(self, parts: Parts) -> int:
        """Devices, or nodes, that it has too few of."""
        pool = self._pool()
        if pool is None:
            return self.booked.missing + _size(self.booked.parts) - _size(parts)
        return sum(
            count * devices_of(need) for need, count in open_needs(self.diary.terrain, pool, parts)
        )

    def _pools(self) -> tuple[Pool, ...]:
        return pools_of(self.diary.terrain, self.booked.what, nobody=self.booked.owners.nobody)

    def _pool(self) -> Pool | None:
        if self.booked.what.domains is not None:
            return None
        return pool_around(self.diary.terrain, self._pools(), self.kept)

    def _most(self, need: Need, count: int) -> Place | None:
        """A place for as many units as there are, `count` at most."""
        best, least, most = None, 1, count
        while least <= most:
            # Mostly all of them can be had.
            middle = most if most == count else (least + most) // 2
            place = None
            for view in views(None):
                pool = Pool("", (replace(need, count=middle),))
                place = place or self.diary.chooser.place(pool, [self.span], view)
            if place is None:
                most = middle - 1
            else:
                best, least = place, middle + 1
        return best


def _has_its_nodes(booked: Booked) -> bool:
    """Whether it is of these nodes and no others: by their names, or as parts of a domain."""
    what = booked.what
    return what.domains is not None or bool(what.nodes is not None and what.nodes.names)


def _size(parts: Parts) -> int:
    """Devices of shares; a whole node counts as one, and so does a share without any."""
    shares = (share for part in parts for share in part.shares)
    return sum(1 if share.whole else max(1, len(share.devices)) for share in shares)


def _kept(terrain: Terrain, parts: Parts, *, nobody: bool) -> Parts:
    """Shares without those nodes and devices that failed."""
    shares = [(p.cluster, [_alive(terrain, s, nobody=nobody) for s in p.shares]) for p in parts]
    found = [(cluster, tuple(s for s in each if s is not None)) for cluster, each in shares]
    return tuple(Part(cluster, each) for cluster, each in found if each)


def _alive(terrain: Terrain, share: NodeShare, *, nobody: bool) -> NodeShare | None:
    row = terrain.snapshot.row_of.get(share.node)
    if nobody and row is not None:
        return share
    if row is None or not terrain.usable[row]:
        return None
    model = terrain.snapshot.nodes.model[row]
    works = tuple(g for g in share.devices if g.index < len(model) and model[g.index] != 0)
    if len(works) == len(share.devices):
        return share
    return replace(share, devices=works) if works else None


def _joined(parts: Parts, more: Parts) -> Parts:
    """Two places as one, the shares of a node together."""
    by_cluster: dict[ClusterName, dict[NodeId, NodeShare]] = {}
    for part in (*parts, *more):
        shares = by_cluster.setdefault(part.cluster, {})
        for share in part.shares:
            known = shares.get(share.node)
            shares[share.node] = share if known is None else _sum(known, share)
    return tuple(
        Part(name, tuple(share for _, share in sorted(shares.items())))
        for name, shares in sorted(by_cluster.items())
    )


def _sum(one: NodeShare, other: NodeShare) -> NodeShare:
    return replace(
        one,
        cpu_milli=one.cpu_milli + other.cpu_milli,
        memory_bytes=one.memory_bytes + other.memory_bytes,
        devices=(*one.devices, *other.devices),
        whole=one.whole or other.whole,
    )
