"""One decision of the broker: what to rent, what to drain, and why, by a ground alone."""

from atoll.core.engine.burst.broker.candidates import rented
from atoll.core.engine.burst.broker.ground import Deeds, Ground, Rent
from atoll.core.engine.burst.broker.retry import fit_to_try
from atoll.core.engine.burst.broker.rooms import Purse
from atoll.core.engine.choice.worth import delay_cost, dollars, hour_of, in_words
from atoll.core.model.burst_wants import BurstDecision, Want


def decide(ground: Ground) -> Deeds:
    """What is to be done now. The same ground gives the same deeds."""
    purse = Purse(ground.budgets)
    covered = {job for each in ground.instances for job in each.jobs}
    rents = []
    for want in ground.wants:
        if want.job in covered or want.placed_on is not None:
            continue
        rent = _rent(ground, want)
        if rent and purse.take(rent.queue, rate=rent.offer.price, ahead=rent.ahead):
            rents.append(rent)
    decisions = [
        BurstDecision(ground.now, "rent", each.why, offer=each.offer.key, job=each.jobs[0])
        for each in rents
    ]
    return Deeds(tuple(rents), decisions=tuple(decisions), memory=ground.memory)


def _rent(ground: Ground, want: Want) -> Rent | None:
    offers = fit_to_try(ground.offers, ground.setbacks, now=ground.now, options=ground.options)
    found = [each for each in rented(want, offers, ground.policies, now=ground.now) if each.allowed]
    if not found or not want.local_p50_at:
        return None
    best = found[0]
    hour = hour_of(ground.policies, want.queue, want.asks)
    saved = delay_cost(hour, now=best.start_at, until=want.local_p50_at)
    if saved <= best.price:
        return None
    offer = next(each for each in offers if each.key == best.offer)
    wait = in_words(want.local_p50_at - ground.now)
    why = (
        f"rented {best.offer} at {dollars(offer.price)}/h for job {want.job}: local start in "
        f"{wait}, delay worth {dollars(saved)}, cost {dollars(best.price)}"
    )
    return Rent(offer, want.queue, (want.job,), best.price, why)
