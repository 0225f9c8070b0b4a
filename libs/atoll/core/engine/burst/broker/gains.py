"""What renting would save each want with each offer.

Without a deadline: what the time is worth by which the job would start earlier. With one: what
missing it costs, by the chance that the start here comes after the latest safe one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from atoll.core.engine.burst.broker.ground import Floats, Ground
from atoll.core.engine.burst.broker.in_time import worth_in_time
from atoll.core.engine.burst.broker.leave import Leave, leave_of
from atoll.core.engine.burst.broker.starts import Start, late_chance, start_of, waits
from atoll.core.engine.burst.broker.table import Bools, Table, table_of
from atoll.core.engine.burst.rent import averted, is_hopeless, spared
from atoll.core.engine.choice.worth import HOUR_S, hour_of
from atoll.core.model.burst import Market, Offer
from atoll.core.model.burst_wants import Want

SPOT_RUN_S = 6 * HOUR_S
"""For so long a spot instance is expected to last, for what interruptions cost."""


@dataclass(frozen=True, slots=True, eq=False)
class Hopes:
    """(W) what each want can hope for without renting."""

    starts: tuple[Start, ...]
    hours: Floats
    """Micro-dollars that an hour of delay costs."""
    lates: Floats
    """Chance of a start here after the latest safe one; 0 without a deadline."""
    penalties: Floats
    """Micro-dollars that a deadline missed costs."""
    latest_s: Floats
    """From now to the latest safe start; without a deadline without end."""


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """W wants against O offers. Micro-dollars as floats."""

    wants: tuple[Want, ...]
    offers: tuple[Offer, ...]
    table: Table
    hopes: Hopes
    leave: Leave
    prices: Floats
    """(O) of an hour."""
    held_s: Floats
    """(W, O) for which a job holds an instance: its lead, its work, and its end."""
    costs: Floats
    """(W, O) of an instance for one job alone."""
    saved: Floats
    """(W, O) by a start there; 0 where nothing is open."""

    def without(self, shut: Bools) -> "Gains":
        """The same where (W, O) is not shut."""
        return replace(self, saved=np.where(shut, 0.0, self.saved))


def gains_of(ground: Ground, wants: Sequence[Want], offers: Sequence[Offer]) -> Gains:
    """For wants and offers, at least one each."""
    wants, offers = tuple(wants), tuple(offers)
    table, hopes = table_of(wants, offers), hopes_of(ground, wants)
    prices = np.array([float(offer.price) for offer in offers])
    lost_s = _lost_s(wants, offers)
    work_s = np.array([want.work_s for want in wants])[:, None]
    held_s = _leads(offers) + work_s + lost_s + ground.options.end_s
    costs = held_s / HOUR_S * prices
    borne = costs * table.shares
    leave = leave_of(ground, wants, offers, fits=table.fits, costs=borne)
    saved = _saved(offers, hopes, lost_s)
    free = leave.open & ~np.isfinite(hopes.latest_s)[:, None]
    asked, leads = np.where(free, borne, np.inf), _leads(offers)
    saved += worth_in_time(ground, wants, hopes.starts, costs=asked, saved=saved, leads=leads)
    saved -= np.array([float(ground.options.egress.get(each.region, 0)) for each in offers])
    saved = np.where(leave.open, np.maximum(saved, 0.0), 0.0)
    return Gains(wants, offers, table, hopes, leave, prices, held_s, costs, saved)


def hopes_of(ground: Ground, wants: Sequence[Want]) -> Hopes:
    """Without any offer."""
    now, options = ground.now, ground.options
    starts = tuple(start_of(want, now=now, options=options) for want in wants)
    known: dict[tuple[object, ...], float] = {}
    for want in wants:
        shape = (want.queue, want.asks[:1])
        if shape not in known:
            known[shape] = float(hour_of(ground.policies, want.queue, want.asks))
    hours = np.array([known[want.queue, want.asks[:1]] for want in wants])
    latest_s = np.array([_latest_s(want, now) for want in wants])
    lates = np.array([late_chance(*pair) for pair in zip(starts, latest_s, strict=True)])
    work_h = np.array([want.work_s for want in wants]) / HOUR_S
    penalties = hours * np.maximum(options.deadline_h, work_h)
    return Hopes(starts, hours, lates, penalties, latest_s)


def _latest_s(want: Want, now: float) -> float:
    if not want.deadline_at:
        return float("inf")
    return want.deadline_at - want.work_s - want.overhead_s - now


def _saved(offers: Sequence[Offer], hopes: Hopes, lost_s: Floats) -> Floats:
    """Who can meet its deadline nowhere any more is in as much of a hurry as who has none."""
    ready_s, latest_s = _leads(offers) + lost_s, hopes.latest_s
    delays = spared(hopes.hours, waits(hopes.starts, _leads(offers)) - lost_s)
    late = averted(hopes.lates, hopes.penalties, ready_s=ready_s, latest_s=latest_s)
    urgent = np.isfinite(latest_s) & ~is_hopeless(ready_s=ready_s, latest_s=latest_s)
    return np.where(urgent[:, None], late, delays)


def _lost_s(wants: Sequence[Want], offers: Sequence[Offer]) -> Floats:
    """(W, O) that interruptions are expected to cost, starting anew included."""
    spot = np.array([offer.market is Market.SPOT for offer in offers])
    work_s = np.array([want.work_s for want in wants])[:, None]
    overhead_s = np.array([want.overhead_s for want in wants])[:, None]
    return np.asarray(np.where(spot, work_s / SPOT_RUN_S * (overhead_s + _leads(offers)), 0.0))


def _leads(offers: Sequence[Offer]) -> Floats:
    return np.array([offer.lead_s for offer in offers])
