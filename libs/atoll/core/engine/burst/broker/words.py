"""Decisions in sentences, with the numbers that they rest on."""

from collections.abc import Sequence

import numpy as np

from atoll.core.engine.burst.broker.fill import Load
from atoll.core.engine.burst.broker.forecast_rents import PoolRent, PoolShort
from atoll.core.engine.burst.broker.gains import Gains
from atoll.core.engine.burst.broker.ground import Drain, Ground
from atoll.core.engine.burst.broker.job_rents import JobRents, Refusal
from atoll.core.engine.burst.broker.leave import Bar
from atoll.core.engine.choice.worth import dollars, in_words
from atoll.core.model.burst import MICROS, Instance, Market, Offer
from atoll.core.model.burst_wants import BurstDecision, Want
from atoll.core.model.resources import BLOCKS_PER_DEVICE

Terms = tuple[tuple[str, float], ...]
NAMED = 3
"""Jobs of an instance that are named."""
TEXTS = {
    Bar.NO_OFFER: "nobody offers now what holds it whole",
    Bar.SPOT_ONLY: "only spot is on offer, and it must not be stopped",
    Bar.MAX_COST: "all that could hold it costs more than its own limit",
    Bar.WAITS_FOR_SPOT: "it waits for a spot instance: there is time until its deadline",
    Bar.TRIED: "what was rented for it before was of no use to it; it is tried again later",
    Bar.MANY: "enough is rented in one decision; the next one follows",
}


def job_terms(gains: Gains, load: Load, row: int) -> Terms:
    """What one job's part of a rent rests on. Dollars and seconds."""
    start = gains.hopes.starts[row]
    share = gains.table.shares[list(load.wants), load.offer].sum()
    part = gains.table.shares[row, load.offer] / max(share, 1e-9)
    return (
        ("local_p50_s", start.p50_s),
        ("local_p90_s", start.p90_s),
        ("ready_s", gains.offers[load.offer].lead_s),
        ("late_chance", float(gains.hopes.lates[row])),
        ("saved", float(gains.saved[row, load.offer]) / MICROS),
        ("cost", float(load.cost * part) / MICROS),
        ("instance_cost", load.cost / MICROS),
        ("jobs", float(len(load.wants))),
    )


def rent_why(gains: Gains, load: Load) -> str:
    """The sentence for an instance, told by the first of its jobs."""
    offer, start = gains.offers[load.offer], gains.hopes.starts[load.wants[0]]
    local = f"local start {in_words(start.p50_s)} (p90 {in_words(start.p90_s)})"
    worth = f"delay worth {dollars(round(load.saved))}"
    late = gains.hopes.lates[load.wants[0]]
    if late > 0:
        worth = f"{late:.0%} late for its deadline, worth {dollars(round(load.saved))}"
    jobs = _jobs([gains.wants[row] for row in load.wants])
    return (
        f"rented {named(offer)} for {jobs}: {local} against {in_words(offer.lead_s)}, "
        f"{worth}, cost {dollars(round(load.cost))}"
    )


def named(offer: Offer) -> str:
    """`spot p4d in us-east-1a at $9.83/h`."""
    market = "spot" if offer.market is Market.SPOT else "on demand"
    machines = f" ({offer.nodes} machines)" if offer.nodes > 1 else ""
    return f"{market} {offer.instance_type}{machines} in {offer.zone} at {dollars(offer.price)}/h"


def rent_decisions(ground: Ground, found: JobRents, load: Load, *, why: str) -> list[BurstDecision]:
    """One for each job."""
    gains = found.gains
    if gains is None:
        return []
    offer = gains.offers[load.offer]
    return [
        BurstDecision(
            ground.now,
            "rent",
            why,
            kind=offer.kind,
            devices=offer.nodes * offer.devices,
            offer=offer.key,
            job=gains.wants[row].job,
            queue=gains.wants[row].queue,
            terms=job_terms(gains, load, row),
        )
        for row in load.wants
    ]


def pool_why(rent: PoolRent) -> str:
    """The sentence for what a forecast asks for."""
    need, amount = rent.need, rent.need.amount
    what = f"{need.pool.kind or 'machine'}s"
    return (
        f"rented {named(rent.offer)} by forecast: {amount.best} {what} beyond what is there are "
        f"best (the {amount.quantile:.0%} quantile: an hour of one is worth {need.value:.2f} "
        f"dollars and costs {need.price:.2f}), {need.held} are held"
    )


def pool_decision(ground: Ground, rent: PoolRent, why: str) -> BurstDecision:
    """For one instance."""
    return BurstDecision(
        ground.now,
        "rent",
        why,
        kind=rent.offer.kind,
        devices=rent.offer.units,
        offer=rent.offer.key,
        queue=rent.need.pool.queue,
        terms=pool_terms(rent),
    )


def pool_terms(rent: PoolRent) -> Terms:
    """Devices and dollars."""
    need, amount = rent.need, rent.need.amount
    return (
        ("held", float(need.held)),
        ("best", float(amount.best)),
        ("low", float(amount.low)),
        ("high", float(amount.high)),
        ("quantile", amount.quantile),
        ("value", need.value),
        ("price", need.price),
    )


def short_decision(ground: Ground, short: PoolShort) -> BurstDecision:
    """Why a pool does not get what it needs."""
    kind = short.pool.kind or "machine"
    wants = f"{short.need.amount.hold} {kind}s are" if short.need else f"{kind}s may be"
    held = f", {short.need.held} are held" if short.need else ""
    why = f"nothing rented by forecast: {wants} wanted{held}, but {short.why}"
    return BurstDecision(ground.now, "none", why, kind=short.pool.kind, queue=short.pool.queue)


def drain_decision(ground: Ground, drain: Drain, instance: Instance) -> BurstDecision:
    """For one instance."""
    offer = instance.offer
    return BurstDecision(
        ground.now,
        "drain",
        drain.why,
        kind=offer.kind,
        devices=offer.units,
        offer=offer.key,
        queue=instance.queue,
        terms=(("price", offer.price / MICROS), ("stop_in_s", drain.stop_at - ground.now)),
        instances=(instance.id,),
    )


def none_decision(ground: Ground, found: JobRents, refusal: Refusal) -> BurstDecision:
    """Why nothing was rented for a job."""
    text, terms = _none(found, refusal)
    want = refusal.want
    return BurstDecision(
        ground.now,
        "none",
        f"nothing rented for job {want.job}: {text}",
        kind=want.asks[0].kind if want.asks else "",
        devices=want.asks[0].blocks // BLOCKS_PER_DEVICE if want.asks else 0,
        job=want.job,
        queue=want.queue,
        terms=terms,
    )


def _none(found: JobRents, refusal: Refusal) -> tuple[str, Terms]:
    gains, row = found.gains, refusal.row
    if gains is None or row is None or refusal.bar is not Bar.SOON:
        return refusal.detail or TEXTS.get(refusal.bar, ""), ()
    opened = np.where(gains.leave.open[row], gains.costs[row] - gains.saved[row], np.inf)
    best, start = int(np.argmin(opened)), gains.hopes.starts[row]
    saved, cost = gains.saved[row, best] / MICROS, gains.costs[row, best] / MICROS
    text = (
        f"local start {in_words(start.p50_s)} (p90 {in_words(start.p90_s)}), the best would be "
        f"{named(gains.offers[best])}: worth ${saved:.2f}, cost ${cost:.2f}"
    )
    terms = (
        ("local_p50_s", start.p50_s),
        ("local_p90_s", start.p90_s),
        ("ready_s", gains.offers[best].lead_s),
        ("late_chance", float(gains.hopes.lates[row])),
        ("saved", float(saved)),
        ("cost", float(cost)),
    )
    return text, terms


def _jobs(wants: Sequence[Want]) -> str:
    """`job 17`, or `jobs 17, 18, 19 and 2 more`."""
    numbers = ", ".join(str(want.job) for want in wants[:NAMED])
    more = f" and {len(wants) - NAMED} more" if len(wants) > NAMED else ""
    return f"job{'s' if len(wants) > 1 else ''} {numbers}{more}"
