"""What is rented, as people read it."""

from collections.abc import Iterable, Iterator
from typing import Final

from atoll.cli.money import money, money_or
from atoll.cli.render import Column, Listing
from atoll.cli.words import ago, bytes_text, cpus_text, plural, span
from atoll.client.burst_views import (
    BudgetInfo,
    BurstDecisionInfo,
    BurstStatus,
    InstanceInfo,
    OfferInfo,
    PolicyInfo,
    ProviderInfo,
    SpendInfo,
)
from atoll.core.model.burst import InstanceState, Market

ALL_QUEUES: Final = "(all)"
_MARKETS: Final = {Market.ON_DEMAND: "on demand", Market.SPOT: "spot"}


def market_text(market: Market) -> str:
    """`on demand`, `spot`."""
    return _MARKETS[market]


def devices_of(offer: OfferInfo) -> str:
    """`4 x A10G`, `64 CPUs`, `2 nodes of 8 x H100`."""
    each = f"{offer.devices} x {offer.kind}" if offer.kind else _cpus(offer)
    return f"{offer.nodes} nodes of {each}" if offer.nodes > 1 else each


def _cpus(offer: OfferInfo) -> str:
    return f"{cpus_text(offer.cpu_milli)} CPU{'' if offer.cpu_milli == 1000 else 's'}"


def markets_text(policy: PolicyInfo) -> str:
    """`spot`; `any` for both."""
    return market_text(policy.markets[0]) if len(policy.markets) == 1 else "any"


def queue_text(queue: str) -> str:
    """The queue; `(all)` for all together."""
    return queue or ALL_QUEUES


def whose(queue: str) -> str:
    """`queue nlp`, `all queues`: in a sentence."""
    return f"queue {queue}" if queue else "all queues"


def asked_for(kind: str) -> str:
    """What a forecast counts: a kind of accelerators, or processors."""
    return "processors (of jobs without accelerators)" if kind == "cpu" else kind


def budget_text(budget: BudgetInfo) -> str:
    """`$20.00 an hour, $3,000.00 a month`."""
    parts = (
        ("an hour", budget.per_hour),
        ("a month", budget.per_month),
    )
    found = [f"{money(given)} {per}" for per, given in parts if given is not None]
    return ", ".join(found) or "no budget of its own"


def policy_text(policy: PolicyInfo) -> Iterator[str]:
    """What it says besides yes or no, one bound each."""
    yield budget_text(policy.budget)
    if policy.regions:
        yield f"in {' or '.join(policy.regions)}"
    if policy.providers:
        yield f"from {' or '.join(policy.providers)}"
    if len(policy.markets) == 1:
        yield f"{market_text(policy.markets[0])} only"
    if policy.most_price is not None:
        yield f"at most {money(policy.most_price)} per device-hour"


def status_lines(status: BurstStatus, now: float) -> Iterator[str]:
    """Where renting stands."""
    yield f"{_whether(status.policy)}; {_leader(status, now)}"
    yield f"  limits     {'; '.join(policy_text(status.policy))}"
    yield f"  spending   {_spending(status.spend)}"
    counts = [f"{n} {state}" for state in InstanceState if (n := status.instances.get(state, 0))]
    yield f"  instances  {', '.join(counts) or 'none'}"
    titles = ["providers", *("" for _ in status.providers)]
    for title, each in zip(titles, status.providers, strict=False):
        yield f"  {title:<9}  {_provider(each, now)}"
    if status.last is not None:
        yield f"  last       {_when(status.last, now)}: {status.last.why}"


def _whether(policy: PolicyInfo) -> str:
    if policy.killed:
        return "switched off: nothing is rented, and what was is given back"
    if policy.allowed:
        return "may rent"
    return "may not rent, but for queues whose own policy allows it"


def _leader(status: BurstStatus, now: float) -> str:
    if not status.leader:
        return "nobody leads, so nothing is decided"
    soon = f", looks again in {span(status.next_at - now)}" if status.next_at > now else ""
    return f"led by {status.leader}{soon}"


def _spending(spend: SpendInfo) -> str:
    return (
        f"{money(spend.rate_per_hour)} an hour now; {money(spend.hour)} this hour, "
        f"{money(spend.month)} this month"
    )


def _provider(provider: ProviderInfo, now: float) -> str:
    told = f": {provider.message}" if provider.message else ""
    if provider.reachable:
        return f"{provider.name} answered {ago(provider.seen_at, now)} ago{told}"
    last = f" since {ago(provider.seen_at, now)}" if provider.seen_at else ""
    return f"{provider.name} does not answer{last}{told}"


def decision_lines(decisions: Iterable[BurstDecisionInfo], now: float) -> Iterator[str]:
    """Decisions with their terms, the latest first."""
    for each in decisions:
        about = ", ".join(_about(each))
        yield f"  {_when(each, now)}{f': {about}' if about else ''}"
        yield f"      {each.why}"
        if each.terms:
            terms = ", ".join(f"{name} = {value:g}" for name, value in each.terms.items())
            yield f"      {terms}"


def _when(decision: BurstDecisionInfo, now: float) -> str:
    return f"{ago(decision.at, now)} ago  {decision.action}"


def _about(decision: BurstDecisionInfo) -> Iterator[str]:
    if decision.devices and decision.kind:
        yield f"{decision.devices} x {decision.kind}"
    if decision.offer:
        yield decision.offer
    if decision.job_id:
        yield f"job {decision.job_id}"
    if decision.instances:
        numbers = ", ".join(map(str, decision.instances))
        yield f"instance{'s' if len(decision.instances) > 1 else ''} {numbers}"


def jobs_text(jobs: tuple[int, ...]) -> str:
    """`1042`, `3 jobs`, `-`."""
    return plural(len(jobs), "job") if len(jobs) > 1 else "".join(map(str, jobs)) or "-"


def instances(now: float) -> Listing[InstanceInfo]:
    """The table of instances, with times as they are at `now`."""
    return Listing(
        columns=(
            Column("ID", lambda i: str(i.id), right=True),
            Column("STATE", lambda i: i.state.value),
            Column("HAS", lambda i: devices_of(i.offer)),
            Column("OFFER", lambda i: i.offer.key),
            Column("$/H", lambda i: money(i.offer.price_per_hour), right=True),
            Column("SPENT", lambda i: money(i.spent), right=True),
            Column("AGE", lambda i: ago(i.requested_at, i.ended_at or now), right=True),
            Column("IDLE", lambda i: ago(i.idle_since, i.ended_at or now), right=True),
            Column("QUEUE", lambda i: queue_text(i.queue)),
            Column("FOR", lambda i: jobs_text(i.jobs)),
            Column("CLUSTER", lambda i: i.cluster or "-", wide=True),
            Column("AT PROVIDER", lambda i: i.provider_id or "-", wide=True),
            Column("BOOT", _boot, right=True, wide=True),
            Column("ENDS FOR", lambda i: i.cause or "-"),
            Column("WHY", lambda i: i.message or i.why or "-", wide=True),
        ),
        name=lambda i: str(i.id),
        empty="nothing is rented",
    )


def _boot(instance: InstanceInfo) -> str:
    ready = instance.ready_at
    return span(ready - instance.requested_at) if ready else "-"


OFFERS: Final[Listing[OfferInfo]] = Listing(
    columns=(
        Column("OFFER", lambda o: o.key),
        Column("HAS", devices_of),
        Column("CPUS", lambda o: cpus_text(o.cpu_milli), right=True),
        Column("MEMORY", lambda o: bytes_text(o.memory_bytes), right=True),
        Column("$/H", lambda o: money(o.price_per_hour), right=True),
        Column("$/DEVICE-H", lambda o: money(o.price_per_device_hour), right=True),
        Column("MARKET", lambda o: market_text(o.market)),
        Column("REGION", lambda o: o.region or "-"),
        Column("STARTS IN", lambda o: span(o.lead_s), right=True),
        Column("TO BE HAD", lambda o: "yes" if o.available else "not lately"),
    ),
    name=lambda o: o.key,
    empty="nothing is on offer: no provider is set up, or none offers this",
)

POLICIES: Final[Listing[PolicyInfo]] = Listing(
    columns=(
        Column("QUEUE", lambda p: queue_text(p.queue)),
        Column("MAY RENT", lambda p: "switched off" if p.killed else "yes" if p.allowed else "no"),
        Column("PER HOUR", lambda p: money_or(p.budget.per_hour, "no bound"), right=True),
        Column("PER MONTH", lambda p: money_or(p.budget.per_month, "no bound"), right=True),
        Column("REGIONS", lambda p: " ".join(p.regions) or "any"),
        Column("PROVIDERS", lambda p: " ".join(p.providers) or "any"),
        Column("MARKETS", markets_text),
        Column("MOST $/DEVICE-H", lambda p: money_or(p.most_price, "no bound"), right=True),
        Column("HOUR OF DELAY", lambda p: money_or(p.hour_of_delay or None), right=True),
        Column("ETAG", lambda p: str(p.etag), wide=True),
    ),
    name=lambda p: queue_text(p.queue),
    empty="no policies: nobody may rent; `atoll burst policy set --all --allow` lets all",
)
