"""What can still be rented: offers that have not failed lately, less what is rented of them."""

from collections import Counter
from collections.abc import Sequence

from atoll.core.engine.burst.broker.ground import Ground
from atoll.core.engine.burst.broker.retry import fit_to_try
from atoll.core.model.burst import Offer


class Stock:
    """Counts down while plans are made."""

    def __init__(self, ground: Ground) -> None:
        self._offers = tuple(
            fit_to_try(ground.offers, ground.setbacks, now=ground.now, options=ground.options)
        )
        self._taken = Counter(each.offer.key for each in ground.instances)
        self.left = ground.options.most_rents
        """Instances that may still be rented in this decision."""

    def offers(self) -> Sequence[Offer]:
        """Of which one more can be had."""
        return [each for each in self._offers if self.has(each)] if self.left > 0 else []

    def has(self, offer: Offer) -> bool:
        """Whether one more can be had."""
        return self.count(offer) > 0

    def count(self, offer: Offer) -> int:
        """How many more can be had, as far as it matters in this decision."""
        there = offer.most - self._taken[offer.key] if offer.most else self.left
        return min(there, self.left)

    def narrowed(self) -> list[Offer]:
        """Of zones of a region that differ in nothing else the cheapest ones, then the quickest.

        As many zones as it takes to rent all that may be rented.
        """
        counts: Counter[tuple[object, ...]] = Counter()
        best = []
        for each in sorted(self.offers(), key=lambda offer: (offer.price, offer.lead_s, offer.key)):
            if counts[_alike(each)] < self.left:
                counts[_alike(each)] += self.count(each)
                best.append(each)
        return sorted(best, key=lambda offer: offer.key)

    def take(self, offer: Offer) -> None:
        """One is planned."""
        self._taken[offer.key] += 1
        self.left -= 1


def _alike(offer: Offer) -> tuple[object, ...]:
    amounts = (offer.kind, offer.nodes, offer.devices, offer.cpu_milli, offer.memory_bytes)
    return (offer.provider, offer.region, offer.instance_type, offer.market, *amounts)
