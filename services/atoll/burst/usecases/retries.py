"""Asks somebody else for what was asked for by hand and did not come.

What was rented for jobs, or by forecast, is for the next decision: it knows whether they still
need it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from atoll.burst.usecases.books import Books
from atoll.burst.usecases.words import short_in_words
from atoll.core.engine.burst.broker.ground import Rent
from atoll.core.engine.burst.broker.retry import next_offer, setbacks_of
from atoll.core.model.burst import Instance, Offer
from atoll.core.model.burst_rules import Policies, refusal
from atoll.core.model.burst_wants import BurstDecision
from atoll.ports.store.burst import BurstTx

LATELY: Final = 200
"""Ended instances that are looked at for what failed lately."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What there is to be tried in place of something."""

    offers: Sequence[Offer]
    policies: Policies
    ended: Sequence[Instance]

    def instead_of(self, failed: Instance, books: Books, *, now: float) -> Rent | None:
        """The next offer, within the policy of who pays."""
        allowed = [o for o in self.offers if not refusal(self.policies, failed.queue, o)]
        options, setbacks = books.terms.options, setbacks_of([*self.ended, failed], now=now)
        offer = next_offer(failed.offer, allowed, setbacks, now=now, options=options)
        if offer is None:
            return None
        why = f"rented {offer.key} in place of instance {failed.id}: {failed.message}"
        ahead = round(offer.price * (offer.lead_s + options.end_s) / 3600)
        return Rent(offer, failed.queue, failed.jobs, ahead, why)


def by_hand(row: Instance) -> bool:
    """Whether somebody asked for it."""
    return row.keep_until > 0


async def elsewhere(books: Books, rows: Iterable[Instance]) -> Elsewhere | None:
    """What could be tried in place of some of them; None: nobody asked for any of them by hand."""
    if not any(by_hand(row) for row in rows):
        return None
    store = books.store
    ended = await store.list_instances(ended=True, before=0, limit=LATELY)
    policies = {each.queue: each for each in await store.policies()}
    return Elsewhere(await store.offers(), policies, ended)


async def tried_elsewhere(
    tx: BurstTx, books: Books, failed: Instance, *, places: Elsewhere, now: float
) -> None:
    """Record an instance of another offer in its place, as far as limits and offers allow."""
    rent = places.instead_of(failed, books, now=now)
    told = BurstDecision(
        now, "none", "", offer=failed.offer.key, queue=failed.queue, instances=(failed.id,)
    )
    if rent is None:
        why = f"nothing else is to be had now in place of instance {failed.id}: {failed.message}"
        await tx.add_decisions([replace(told, why=why)])
        return
    short = await tx.take_budget(rent.queue, rate=rent.offer.price, ahead=rent.ahead)
    if short is not None:
        why = f"{rent.offer.key} in place of instance {failed.id}: {short_in_words(short)}"
        await tx.add_decisions([replace(told, why=why)])
        return
    (made,) = await tx.add_instances([books.fresh(rent, now=now, keep_until=failed.keep_until)])
    ids = (failed.id, made.id)
    done = replace(told, action="retry", why=rent.why, offer=rent.offer.key, instances=ids)
    await tx.add_decisions([done])
