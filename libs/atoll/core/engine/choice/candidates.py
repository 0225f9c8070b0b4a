"""Where one job could run, the best first: clusters, rented machines, and what could be rented.

The best has the least of what its queue pays for the time until the job ends there, and of
what is paid for running it. Of equals the one comes first that the cycle itself would take,
which is the one where fragmentation grows least.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from atoll.core.engine.burst.broker.candidates import rented as offered
from atoll.core.engine.choice import places
from atoll.core.engine.choice.asks import asks_of
from atoll.core.engine.choice.places import Place, Terms
from atoll.core.engine.choice.rooms import rooms
from atoll.core.engine.choice.scene import Scene
from atoll.core.engine.choice.wanting import NO_HOPE, Hope, want_of
from atoll.core.engine.choice.worth import hour_of
from atoll.core.engine.rented.cost import too_dear
from atoll.core.model.burst import InstanceState, Rental
from atoll.core.model.burst_wants import Ask, Candidate
from atoll.core.model.ids import ClusterName
from atoll.core.model.plan import PendingJob
from atoll.core.model.reason import ReasonCode
from atoll.core.state.needs import need_of
from atoll.core.state.rentals import COMING
from atoll.core.state.run_times import job_like

UNKNOWN_KIND = -3


@dataclass(frozen=True, slots=True)
class Asked:
    """A job, and what is told of its start."""

    pending: PendingJob
    starts: Mapping[ClusterName, float] = field(default_factory=dict)
    """By cluster, in the order of the queue."""
    hope: Hope = NO_HOPE
    """As its ETA says."""
    promised: bool = False


def candidates(scene: Scene, asked: Asked) -> tuple[Candidate, ...]:
    """All places, what is not allowed last."""
    choice = _Choice(scene, asked)
    found = [*choice.local(), *choice.rented(), *choice.offered()]
    return tuple(sorted(found, key=lambda each: _rank(each, asked.hope.cluster)))


def _rank(each: Candidate, best: ClusterName) -> tuple[bool, int, bool, str]:
    name = each.offer or each.cluster
    return not each.allowed, each.total, each.cluster != best, name


class _Choice:
    """One job's."""

    def __init__(self, scene: Scene, asked: Asked) -> None:
        self.scene, self.asked, self.look = scene, asked, scene.look
        self.pending = asked.pending
        self.asks = asks_of(self.pending.request) or (self._all_of_it(),)
        hour = hour_of(scene.renting.policies, self.pending.queue, self.asks)
        self.terms = Terms(self.look.now, hour, self._run_s())
        self.rentals = {rental.cluster: rental for rental in self.look.rentals.values}

    def local(self) -> Iterator[Candidate]:
        """Clusters that are there anyway."""
        starts = self._starts()
        for view in self.look.clusters:
            if view.name in starts and view.name not in self.rentals:
                promised = self.asked.promised and view.name == self.asked.hope.cluster
                place = Place(view.name, starts[view.name], view.boot_s, promised)
                yield places.local(place, self.terms)
        yield from self._hidden(starts)

    def rented(self) -> Iterator[Candidate]:
        """Rented machines that are there, or on their way for this job."""
        view = self.look.rentals
        for number, rental in enumerate(view.values):
            refused = view.not_allowed(number, self.pending.queue, self.pending.request)
            refused = refused or too_dear(rental, self.pending.request, self.pending.id)
            if rental.state in COMING or not view.joined[number]:
                if self.pending.id in rental.jobs and not refused:
                    yield places.held(rental, self.terms, self._ask(rental))
            elif rental.state is InstanceState.READY:
                yield from self._ready(rental, refused)

    def offered(self) -> Iterator[Candidate]:
        """What could be rented."""
        renting, asks = self.scene.renting, asks_of(self.pending.request)
        if not renting.offers or not asks:
            return
        want = want_of(
            self.pending, asks, self.asked.hope, work_s=self.terms.run_s, now=self.look.now
        )
        yield from offered(want, renting.offers, renting.policies, now=self.look.now)

    def _starts(self) -> Mapping[ClusterName, float]:
        """No cluster is told an earlier start than the job is."""
        asked, least = self.asked, self.asked.hope.p50_at
        known = asked.starts or self._at_room()
        starts = {name: max(start, least) for name, start in known.items()}
        if least and asked.hope.cluster:
            starts[asked.hope.cluster] = least
        return starts

    def _at_room(self) -> Mapping[ClusterName, float]:
        """Of a job that no forecast knows: as if nobody were before it."""
        if self.pending.depends_on:
            return {}
        request, now = self.pending.request, self.look.now
        views = enumerate(self.look.clusters)
        is_open = [v.name for n, v in views if self.look.closed(n, request, now=now) is None]
        return self._rooms({name: "" for name in is_open if name not in self.rentals})

    def _hidden(self, starts: Mapping[ClusterName, float]) -> Iterator[Candidate]:
        """Clusters that take no such work at present, but could run it."""
        request, now = self.pending.request, self.look.now
        codes = {
            view.name: code
            for number, view in enumerate(self.look.clusters)
            if view.name not in starts
            and view.name not in self.rentals
            and (code := self.look.closed(number, request, now=now)) is not None
        }
        for name, start in self._rooms(codes).items():
            if codes[name] is ReasonCode.CLUSTER_AVOIDED:
                place = Place(name, max(start, self.asked.hope.p50_at), self._boot_s(name))
                yield places.local(
                    replace(place, avoided_until=self._avoided_until(name)), self.terms
                )
            else:
                yield places.closed(name, codes[name])

    def _ready(self, rental: Rental, refused: str) -> Iterator[Candidate]:
        start = self._rented_rooms.get(rental.cluster)
        if start is None:
            return
        if refused:
            yield places.denied(rental, refused)
        else:
            place = Place(rental.cluster, start, self._boot_s(rental.cluster))
            yield places.rented(rental, place, terms=self.terms, ask=self._ask(rental))

    @cached_property
    def _rented_rooms(self) -> Mapping[ClusterName, float]:
        return self._rooms(self.rentals)

    def _rooms(self, clusters: Mapping[ClusterName, object]) -> Mapping[ClusterName, float]:
        if not clusters:
            return {}
        return rooms(self.scene, self.pending, clusters=clusters)

    def _boot_s(self, cluster: ClusterName) -> float:
        return next((v.boot_s for v in self.look.clusters if v.name == cluster), 0.0)

    def _avoided_until(self, cluster: ClusterName) -> float:
        avoids = self.look.avoids(self.pending.request, now=self.look.now)
        mine = (a.until for a in avoids if a.cluster == cluster and a.node is None)
        return max(mine, default=0.0)

    def _ask(self, rental: Rental) -> Ask:
        kind = rental.offer.kind
        return next((ask for ask in self.asks if ask.kind in ("", kind)), self.asks[0])

    def _run_s(self) -> float:
        request, kinds = self.pending.request, self.look.kinds
        need = need_of(request, lambda kind: kinds.get(kind, UNKNOWN_KIND))
        limit_s = request.terms.time_limit_s
        return self.scene.times.one(job_like(self.pending.queue, need, limit_s=limit_s))[1]

    def _all_of_it(self) -> Ask:
        """Of a job that no machine holds alone: for what its waiting costs."""
        groups = self.pending.request.groups
        devices = [(g.count, g.shapes[0].device) for g in groups if g.shapes]
        blocks = sum(n * d.count * (d.blocks or 1) for n, d in devices if d is not None)
        return Ask(blocks=blocks)
