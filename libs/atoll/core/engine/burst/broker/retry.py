"""Where to try next when an instance did not come, or was taken back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from atoll.core.engine.burst.broker.ground import Options, Setback
from atoll.core.model.burst import EndCause, Instance, Offer

Setbacks = Mapping[str, Sequence[Setback]]
"""By Offer.key."""
COUNTED_S: Final = 6 * 3600.0
"""What failed longer ago is forgotten."""
MOST_DOUBLINGS: Final = 5
FAILURES: Final = frozenset({EndCause.BOOT_DEADLINE, EndCause.PROVIDER, EndCause.INTERRUPTED})


def setbacks_of(ended: Iterable[Instance], *, now: float) -> dict[str, tuple[Setback, ...]]:
    """From instances that are ended, or about to."""
    found: dict[str, list[Setback]] = {}
    for each in ended:
        at, taken = each.ended_at or now, each.cause is EndCause.INTERRUPTED
        if each.cause in FAILURES and now - at < COUNTED_S:
            found.setdefault(each.offer.key, []).append(Setback(at, taken))
    return {key: tuple(sorted(times)) for key, times in found.items()}


def avoided_until(key: str, setbacks: Setbacks, *, now: float, options: Options) -> float:
    """When an offer that failed is tried again; 0: it has not failed lately."""
    lately = [each for each in setbacks.get(key, ()) if now - each.at < COUNTED_S]
    if not lately:
        return 0.0
    last, doublings = max(lately), min(len(lately) - 1, MOST_DOUBLINGS)
    first_s = options.taken_back_s if last.taken else options.again_s
    return min(last.at, now) + first_s * 2.0**doublings


def fit_to_try(
    offers: Iterable[Offer], setbacks: Setbacks, *, now: float, options: Options
) -> list[Offer]:
    """Those that are available and have not failed lately."""
    return [
        each
        for each in offers
        if each.available and now >= avoided_until(each.key, setbacks, now=now, options=options)
    ]


def next_offer(
    failed: Offer, offers: Iterable[Offer], setbacks: Setbacks, *, now: float, options: Options
) -> Offer | None:
    """The same type in another zone, else another type that holds as much; the cheapest of them.

    The same way of paying first. None: nothing is left to be tried now.
    """
    fit = [
        each
        for each in fit_to_try(offers, setbacks, now=now, options=options)
        if each.key != failed.key and _holds_as_much(each, failed)
    ]
    return min(fit, key=lambda each: _distance(each, failed), default=None)


def _holds_as_much(offer: Offer, failed: Offer) -> bool:
    return (
        offer.kind == failed.kind
        and offer.nodes >= failed.nodes
        and offer.devices >= failed.devices
        and offer.cpu_milli >= failed.cpu_milli
        and offer.memory_bytes >= failed.memory_bytes
    )


def _distance(offer: Offer, failed: Offer) -> tuple[bool, bool, int, str]:
    same = (offer.provider, offer.instance_type) == (failed.provider, failed.instance_type)
    return (not same, offer.market is not failed.market, offer.price, offer.key)
