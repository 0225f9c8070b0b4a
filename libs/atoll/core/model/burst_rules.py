"""Whether a queue may rent an offer: the one answer for the broker, placement and people."""

from collections.abc import Iterable, Mapping

from atoll.core.model.burst import MICROS, BurstPolicy, Offer, chain_of
from atoll.core.model.ids import QueueName

Policies = Mapping[QueueName | None, BurstPolicy]
"""By queue; None is the policy of all together."""


def policy_of(policies: Policies, queue: QueueName | None) -> BurstPolicy:
    """The nearest policy on the way from a queue to all together; nothing is allowed without."""
    found = (policies[each] for each in reversed(chain_of(queue)) if each in policies)
    return next(found, BurstPolicy(None))


def refusal(policies: Policies, queue: QueueName | None, offer: Offer) -> str:
    """Why a queue may not rent an offer; empty when it may.

    The nearest policy says whether it may at all; what the others on the way say narrows it.
    """
    if policies.get(None, BurstPolicy(None)).killed:
        return "renting is switched off for all"
    nearest = policy_of(policies, queue)
    if not nearest.allowed:
        return f"{_whose(nearest.queue)} does not allow renting"
    for each in chain_of(queue):
        if each in policies and (why := _narrowed(policies[each], offer)):
            return f"{_whose(each)} allows {why}"
    return ""


def rentable(offers: Iterable[Offer], policies: Iterable[BurstPolicy]) -> list[Offer]:
    """Those offers that some queue may rent."""
    rules = {policy.queue: policy for policy in policies}
    return [o for o in offers if any(not refusal(rules, queue, o) for queue in rules)]


def _narrowed(policy: BurstPolicy, offer: Offer) -> str:
    if policy.regions and offer.region not in policy.regions:
        return f"regions {', '.join(policy.regions)}, not {offer.region}"
    if policy.providers and offer.provider not in policy.providers:
        return f"providers {', '.join(policy.providers)}, not {offer.provider}"
    if offer.market not in policy.markets:
        return f"{' and '.join(policy.markets)}, not {offer.market}"
    each = offer.price / offer.units
    if policy.most_price and each > policy.most_price:
        return (
            f"${policy.most_price / MICROS:.2f} per device-hour at most, not ${each / MICROS:.2f}"
        )
    return ""


def _whose(queue: QueueName | None) -> str:
    return f"the policy of queue {queue}" if queue else "the policy of all queues"
