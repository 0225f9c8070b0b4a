"""What the leader does now and then: counts spend, refreshes offers, forgets what is old."""

from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from atoll.burst.usecases.desk import Desk
from atoll.burst.usecases.lives import entries
from atoll.burst.usecases.term import Term
from atoll.core.engine.burst.broker.ground import type_key
from atoll.core.model.burst import BurstPolicy, Instance, Offer
from atoll.ports.provider import ProviderUnavailable
from atoll.ports.store.burst import BurstTx

LATELY: Final = 300
"""Instances whose boots are looked at."""
FEWEST_BOOTS: Final = 3
"""With fewer the provider's own word counts."""
PRUNED_AT_ONCE: Final = 1000


@dataclass(slots=True)
class Upkeep:
    """Of one term."""

    term: Term
    keep_s: float
    """Seconds that ended instances and decisions are kept."""
    _offers: dict[str, tuple[Offer, ...]] = field(default_factory=dict)
    """What was written last, by provider."""

    async def count_spend(self) -> int:
        """Add what was spent since the last count to the ledger; micro-dollars."""
        rows = await self.term.books.store.live_instances()
        paid = [row.id for row in rows if row.created_at]
        if not paid:
            return 0

        async def change(tx: BurstTx) -> int:
            now = await tx.now()
            locked = (await tx.lock_instances(paid)).values()
            found = [entry for row in locked for entry in entries(row, now=now)]
            await tx.spend(found)
            return sum(entry.amount for entry in found)

        return await self.term.write(change, quietly=True)

    async def refresh_offers(self, desk: Desk) -> int:
        """Write what a provider offers now, if it is other than before; how many offers."""
        try:
            offered = await desk.ask(lambda provider: provider.offers())
        except ProviderUnavailable:
            return len(self._offers.get(desk.name, ()))
        leads = await self._leads()
        offers = tuple(_as_seen(each, leads) for each in sorted(offered, key=lambda o: o.key))
        if offers != self._offers.get(desk.name):
            await self.term.write(lambda tx: tx.put_offers(desk.name, offers))
            self._offers[desk.name] = offers
        return len(offers)

    async def prune(self) -> int:
        """Forget what ended long ago; how many rows."""
        before = await self.term.now() - self.keep_s
        return await self.term.books.store.prune(before=before, limit=PRUNED_AT_ONCE)

    async def _leads(self) -> dict[str, float]:
        """Seconds from the request until an instance was ready, by type."""
        rows = await self.term.books.store.list_instances(ended=True, before=0, limit=LATELY)
        return leads_of(rows)


async def begin_policy(term: Term, first: BurstPolicy) -> bool:
    """Write the policy of all together if there is none yet; whether it was."""

    async def change(tx: BurstTx) -> bool:
        if await tx.lock_policy(None) is not None:
            return False
        await tx.put_policy(first)
        return True

    return await term.write(change)


async def drop_offers(term: Term) -> list[str]:
    """Forget what providers offered that are not among the settings any more; their names."""
    offered = {each.provider for each in await term.books.store.offers()}
    gone = sorted(offered - set(term.desks))

    async def change(tx: BurstTx) -> None:
        for name in gone:
            await tx.put_offers(name, [])

    if gone:
        await term.write(change)
    return gone


def leads_of(rows: list[Instance]) -> dict[str, float]:
    """The middle boot by type of instance, of types that were booted a few times."""
    boots: dict[str, list[float]] = {}
    for row in rows:
        if row.ready_at:
            # The clock may have gone back meanwhile.
            took_s = max(0.0, row.ready_at - row.requested_at)
            boots.setdefault(type_key(row.offer), []).append(took_s)
    return {key: median(found) for key, found in boots.items() if len(found) >= FEWEST_BOOTS}


def _as_seen(offer: Offer, leads: dict[str, float]) -> Offer:
    # Whole seconds: a lead that wavers by less is no other offer.
    return replace(offer, lead_s=float(round(leads.get(type_key(offer), offer.lead_s))))
