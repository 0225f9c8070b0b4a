"""What could be rented for a job, as places where it could run: with start, price and leave."""

from collections.abc import Iterable, Sequence

from atoll.core.engine.burst.broker.parts import holds
from atoll.core.engine.choice.worth import delay_cost, dollars, hour_of, in_words
from atoll.core.model.burst import Market, Offer
from atoll.core.model.burst_rules import Policies, refusal
from atoll.core.model.burst_wants import Candidate, Want


def rented(
    want: Want, offers: Sequence[Offer], policies: Policies, *, now: float
) -> tuple[Candidate, ...]:
    """One per offer that can hold the whole job, the best first; also what it may not have."""
    hour = hour_of(policies, want.queue, want.asks)
    found = [
        _candidate(want, offer, refusal(policies, want.queue, offer), now=now, hour=hour)
        for offer in offers
        if any(holds(offer, ask) for ask in want.asks)
    ]
    return ranked(found)


def ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """What is allowed first, then by delay and price together; ties by start, then by name."""
    return tuple(sorted(candidates, key=_rank))


def price_of(offer: Offer, seconds: float) -> int:
    """Micro-dollars of an instance for so long."""
    return round(offer.price * max(0.0, seconds) / 3600)


def denied(want: Want, offer: Offer) -> str:
    """Why a job cannot have an offer that its queue may rent; empty when it can."""
    if not offer.available:
        return "none was to be had at the last try"
    if offer.market is Market.SPOT and not want.preemptible:
        return "spot is taken back at any time, and this job must not be stopped"
    price = price_of(offer, want.work_s)
    if want.max_cost and price > want.max_cost:
        return f"it would cost {dollars(price)}, the job's limit is {dollars(want.max_cost)}"
    return ""


def _candidate(want: Want, offer: Offer, refused: str, *, now: float, hour: int) -> Candidate:
    start_at = now + offer.lead_s
    finish_at = start_at + want.work_s
    refused = refused or denied(want, offer)
    place = "on spot" if offer.market is Market.SPOT else "on demand"
    leave = f"but {refused}" if refused else "allowed by queue policy"
    return Candidate(
        offer=offer.key,
        start_at=start_at,
        finish_at=finish_at,
        delay_cost=delay_cost(hour, now=now, until=finish_at),
        price=price_of(offer, want.work_s),
        allowed=not refused,
        why=f"{place} in {in_words(offer.lead_s)} at {dollars(offer.price)}/h, {leave}",
    )


def _rank(candidate: Candidate) -> tuple[bool, int, float, str]:
    name = candidate.offer or candidate.cluster
    return (not candidate.allowed, candidate.total, candidate.start_at, name)
