"""The cheapest runs whose end makes room for a gang, all inside one domain, or none.

Per domain (node, rack, cluster): victims by their cost for what they free, as
many as it takes, then those are spared without which it fits as well. Of all
domains the cheapest wins. Few victims on few devices are searched exactly.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.bounds import least_costs
from atoll.core.engine.covers import covers
from atoll.core.engine.domain_kernels import NOWHERE, sum_up
from atoll.core.engine.domains import ladder
from atoll.core.engine.ground import Ask, Ground, ground
from atoll.core.engine.room_kernels import count_room
from atoll.core.engine.score_kernels import Scoring
from atoll.core.model.plan import GangPlacement
from atoll.core.state.columns import Nodes, scratch_copy
from atoll.core.state.ledger_kernels import Uses, give_tasks
from atoll.core.state.mig import UNITS_PER_BLOCK
from atoll.core.state.snapshot import Snapshot
from atoll.core.state.statement import Statement

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_DOMAINS: Final = 8
"""Of one level that are looked at."""
WIDE: Final = 32
"""Rows of a domain up to which all are looked at together."""
SPARE: Final = 2
"""Times the room that is needed, which the cheapest rows of a wide domain must have."""
MOST_SPARED: Final = 256
"""Victims of one domain that are tried to be spared."""
EXACT_DEVICES: Final = 64
"""Domains up to so many devices are searched exactly, as far as MOST_EXACT goes."""
EXACT_VICTIMS: Final = 14
MOST_EXACT: Final = 512
"""Sets of victims that are tried on one domain."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Runs to stop, by their places among the candidates, and where the gang goes then."""

    victims: Ints
    cost: float
    placement: GangPlacement


@dataclass(frozen=True, slots=True)
class Offer:
    """Who may be stopped, and at what price."""

    uses: Uses
    """One gang per candidate, by rows of the snapshot."""
    cost: Floats
    freed: Floats
    """How much of what is asked for each holds."""
    asked: int
    """1/56 blocks that the gang takes at least; 0 when that cannot be told."""
    units_left: Callable[[Bools], int]
    """What the queue's limits leave once these candidates are gone."""
    sound: Callable[[Bools], bool]
    """Whether the rights allow these together."""


def choose(snapshot: Snapshot, scoring: Scoring, *, ask: Ask, offer: Offer) -> Choice | None:
    """Whom to stop for a gang. `snapshot.nodes`: with what comes free anyhow given back."""
    best: Choice | None = None
    for parts in _domains(snapshot, scoring, ask=ask, offer=offer):
        for rows in parts:
            field, here = ground(snapshot, scoring, ask, rows=rows, uses=offer.uses)
            domain = _Domain(field, offer, here=here, total=len(offer.cost))
            found = domain.choose(best.cost if best else np.inf)
            if found is not None:
                best = found if best is None or found.cost < best.cost else best
                break
    return best


class _Domain:
    """One domain's candidates: `here` are their places among all."""

    def __init__(self, field: Ground, offer: Offer, *, here: Ints, total: int) -> None:
        self.field = field
        self.offer = offer
        self.here = here
        self.total = total
        self.cost = offer.cost[here]
        self.freed = offer.freed[here]
        free = np.maximum(field.snapshot.nodes.blocks_free, 0).sum()
        self.short = max(0, offer.asked - int(free) * UNITS_PER_BLOCK)
        """Units that victims have to free at least."""

    def choose(self, below: float) -> Choice | None:
        """The cheapest victims found, if they cost less than `below`."""
        if self._least() >= below:
            return None
        everyone = np.ones(len(self.here), np.bool_)
        nobody = ~everyone
        if (free := self._try(nobody)) is not None:
            return self._choice(nobody, free)
        if self._try(everyone) is None:
            return None
        found = [self._greedy(order) for order in self._orders()] + self._covers()
        gone, statement = min(found, key=lambda each: float(self.cost[each[0]].sum()))
        exact = self._exact(float(self.cost[gone].sum()))
        gone, statement = exact or (gone, statement)
        return self._choice(gone, statement) if self.cost[gone].sum() < below else None

    def _least(self) -> float:
        """No victims here cost less: the cheapest units, the last run in part."""
        order = np.argsort(self.cost / self.freed, kind="stable")
        total = np.cumsum(self.freed[order])
        if not self.short or not len(order) or total[-1] < self.short:
            return 0.0 if not self.short else np.inf
        last = int(np.searchsorted(total, self.short))
        whole = float(self.cost[order[:last]].sum())
        rest = self.short - (float(total[last - 1]) if last else 0.0)
        return whole + float(self.cost[order[last]] * rest / self.freed[order[last]])

    def _choice(self, gone: Bools, statement: Statement) -> Choice:
        cost = float(self.cost[gone].sum())
        return Choice(self.here[gone], cost, self.field.placement(statement))

    def _try(self, gone: Bools) -> Statement | None:
        of_all = np.zeros(self.total, np.bool_)
        of_all[self.here[gone]] = True
        if not self.offer.sound(of_all):
            return None
        return self.field.without(gone, self.offer.units_left(of_all))

    def _orders(self) -> Iterator[Ints]:
        yield np.lexsort((self.here, self.cost / self.freed))
        rows = len(self.field.snapshot.nodes.id)
        if rows > 1:
            # Whole nodes, the cheapest first: scattered victims leave room for no large task.
            uses = self.field.uses
            of = np.repeat(np.arange(len(self.here)), np.diff(uses.first_task))
            row_cost = np.bincount(uses.row, (self.cost / np.diff(uses.first_task))[of], rows)
            first = np.full(len(self.here), np.inf)
            np.minimum.at(first, of, row_cost[uses.row])
            yield np.lexsort((self.here, self.cost, first))

    def _greedy(self, order: Ints) -> tuple[Bools, Statement]:
        low, high = 0, len(order)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._first(order, middle) is None else (low, middle)
        gone = np.zeros(len(order), np.bool_)
        gone[order[:high]] = True
        statement = self._try(gone)
        assert statement is not None
        return self._spare(gone, statement)

    def _first(self, order: Ints, count: int) -> Statement | None:
        gone = np.zeros(len(order), np.bool_)
        gone[order[:count]] = True
        return self._try(gone)

    def _covers(self) -> list[tuple[Bools, Statement]]:
        if not self._is_small():
            return []
        tried = ((gone, self._try(gone)) for gone in covers(self.field, self.cost))
        return [(gone, statement) for gone, statement in tried if statement is not None]

    def _is_small(self) -> bool:
        return int((self.field.snapshot.nodes.model > 0).sum()) <= EXACT_DEVICES

    def _spare(self, gone: Bools, statement: Statement) -> tuple[Bools, Statement]:
        chosen = np.flatnonzero(gone)
        order = chosen[np.lexsort((chosen, -self.cost[chosen]))]
        for one in order[:MOST_SPARED].tolist():
            fewer = gone.copy()
            fewer[one] = False
            if (fits := self._try(fewer)) is not None:
                gone, statement = fewer, fits
        return gone, statement

    def _exact(self, bound: float) -> tuple[Bools, Statement] | None:
        count = len(self.here)
        if count > EXACT_VICTIMS or not self._is_small():
            return None
        sets = (np.arange(1, 1 << count)[:, None] >> np.arange(count)) & 1 > 0
        cost = sets @ self.cost
        cheaper = np.flatnonzero((cost < bound - 1e-9) & (sets @ self.freed >= self.short))
        for at in cheaper[np.argsort(cost[cheaper], kind="stable")][:MOST_EXACT].tolist():
            if (fits := self._try(sets[at])) is not None:
                return sets[at], fits
        return None


def _domains(
    snapshot: Snapshot, scoring: Scoring, *, ask: Ask, offer: Offer
) -> Iterator[tuple[Ints, ...]]:
    """Rows of the domains in which the gang could fit were all candidates gone.

    Of a wide domain first those rows alone where room is cheapest.
    """
    need = np.array([group.min_count for group in ask.view.request.groups], np.int64)
    emptied = scratch_copy(snapshot.nodes)
    give_tasks(emptied, offer.uses, 0, len(offer.uses.row))
    now, then = (_rooms(nodes, scoring, ask) for nodes in (snapshot.nodes, emptied))
    cost = _cost_by_row(offer, len(snapshot.nodes.id))
    levels = ladder(snapshot, ask.view.request.topology, gathers=True)
    for step in chain(_node_step(snapshot, ask, levels.steps), levels.steps):
        numbers, first, missing = _able(step, now, then, need=need)
        guess = _guesses(snapshot, step, offer, cost=cost, missing=missing)
        numbers = numbers[np.lexsort((first[numbers], guess[numbers]))][:MOST_DOMAINS]
        for number in numbers.tolist():
            rows = np.flatnonzero((step == number) & then.any(axis=0))
            few = _cheap_rows(rows, now, then, need=need, cost=cost)
            yield (few, rows) if len(few) < len(rows) else (rows,)


def _cheap_rows(rows: Ints, now: Ints, then: Ints, *, need: Ints, cost: Floats) -> Ints:
    if len(rows) <= WIDE:
        return rows
    kept = np.zeros(len(rows), np.bool_)
    for group in range(len(need)):
        gained = then[group, rows] - now[group, rows]
        order = np.lexsort((rows, cost[rows] / np.maximum(gained, 1)))
        order = order[then[group, rows[order]] > 0]
        enough = np.searchsorted(np.cumsum(then[group, rows[order]]), SPARE * need[group]) + 1
        kept[order[: max(int(enough), WIDE)]] = True
    return rows[kept]


def _able(
    step: NDArray[np.int32], now: Ints, then: Ints, *, need: Ints
) -> tuple[Ints, Ints, Floats]:
    """(domains that could hold the gang, (V) their first rows, (V) part of its room that lacks)."""
    room, first = sum_up(step, then)
    before, _ = sum_up(step, now)
    fits = np.flatnonzero((room >= need[:, None]).all(axis=0) & (first != NOWHERE))
    # If all groups were as short.
    missing = np.maximum(need[:, None] - before, 0) / np.maximum(room - before, 1)
    return fits, first, missing.max(axis=0)


def _guesses(
    snapshot: Snapshot, step: NDArray[np.int32], offer: Offer, *, cost: Floats, missing: Floats
) -> Floats:
    """(V) what room may cost in each domain: a bound where these are nodes, else a mean."""
    inside = step >= 0
    if offer.asked and np.array_equal(step[inside], np.flatnonzero(inside)):
        least = least_costs(
            snapshot.nodes, offer.uses, cost=offer.cost, freed=offer.freed, asked=offer.asked
        )
        return least[: len(missing)]
    total = np.bincount(step[inside], cost[inside], len(missing)).astype(np.float64)
    guess: Floats = total * missing
    return guess


def _node_step(
    snapshot: Snapshot, ask: Ask, steps: tuple[NDArray[np.int32], ...]
) -> Iterator[NDArray[np.int32]]:
    topology = ask.view.request.topology
    rows = np.arange(len(snapshot.nodes.id), dtype=np.int32)
    if topology is not None and topology.required:
        if not steps:
            return
        rows[steps[0] < 0] = -1
    yield rows


def _rooms(nodes: Nodes, scoring: Scoring, ask: Ask) -> Ints:
    """(G, N) tasks of each group that a node holds, by the alternative of which it holds most."""
    rooms = np.zeros((len(ask.view.shapes), len(nodes.id)), np.int64)
    counts = np.zeros(len(nodes.id), np.int64)
    for group, shapes in enumerate(ask.view.shapes):
        most = ask.view.request.groups[group].count
        for shape in shapes:
            allowed = ask.masks[shape]
            counts[:] = 0
            rows = np.flatnonzero(allowed)
            count_room(nodes, scoring, shape, allowed, most, rows, counts)
            np.maximum(rooms[group], counts, out=rooms[group])
    return rooms


def _cost_by_row(offer: Offer, rows: int) -> Floats:
    counts = np.diff(offer.uses.first_task)
    of = np.repeat(np.arange(len(counts)), counts)
    share = (offer.cost / np.maximum(counts, 1))[of]
    return np.bincount(offer.uses.row, share, rows).astype(np.float64)
