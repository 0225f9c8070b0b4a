"""What is asked of the broker: where it stands, instances, offers, spend. Writes nothing."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from atoll.burst.usecases.books import Books
from atoll.burst.usecases.desk import Health
from atoll.burst.usecases.status import KEPT_AS, status_from_bytes
from atoll.core.model.burst import Budget, BurstPolicy, Instance, Offer
from atoll.core.model.burst_rules import refusal
from atoll.core.model.burst_wants import BurstDecision
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.core.model.ids import QueueName
from atoll.core.model.paging import next_token, page_size, read_token
from atoll.ports.store.burst import BudgetState

HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S
MOST_BUCKETS: Final = 10_000
TOKEN: Final = "page_token"

WhoLeads = Callable[[], Awaitable[str | None]]


NO_BOUND: Final = Budget()


@dataclass(frozen=True, slots=True)
class SpendView:
    """What was spent and is bound, beside its bounds."""

    state: BudgetState
    budget: Budget = NO_BOUND


@dataclass(frozen=True, slots=True)
class SpendOverTime:
    """Now, by queue, and by buckets of time."""

    now: SpendView
    queues: tuple[SpendView, ...]
    from_at: float
    step_s: float
    spent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the broker stands."""

    leader: str
    policy: BurstPolicy
    instances: Mapping[str, int]
    spend: SpendView
    last: BurstDecision | None
    providers: tuple[Health, ...]
    """As the leader has told of them."""
    next_at: float


@dataclass(frozen=True, slots=True)
class InstancePage:
    """Instances, the latest first, and the token of what follows; empty: nothing does."""

    instances: tuple[Instance, ...]
    next_token: str


class Looker:
    """Answers questions on any replica."""

    def __init__(self, books: Books, who_leads: WhoLeads) -> None:
        self._books = books
        self._store = books.store
        self._who_leads = who_leads

    async def standing(self) -> Standing:
        """Where it stands."""
        policies = {each.queue: each for each in await self._store.policies()}
        policy = policies.get(None, BurstPolicy(None, generation=0))
        live = await self._store.live_instances()
        states = {each.queue: each for each in await self._store.budgets()}
        decisions = await self._store.decisions(limit=1)
        status = status_from_bytes(await self._store.memory(KEPT_AS))
        return Standing(
            await self._who_leads() or "",
            policy,
            Counter(row.state.value for row in live),
            SpendView(states.get(None, BudgetState(None)), policy.budget),
            decisions[0] if decisions else None,
            status.providers,
            status.next_after(self._books.clock.now()),
        )

    async def offers(self, *, kind: str, queue: QueueName | None) -> list[Offer]:
        """By price per device; with a queue only what it may rent."""
        policies = {each.queue: each for each in await self._store.policies()}
        found = [
            each
            for each in await self._store.offers()
            if kind in {"", each.kind} and not (queue and refusal(policies, queue, each))
        ]
        return sorted(found, key=lambda each: (each.price / each.units, each.key))

    async def instances(self, *, ended: bool, size: int, token: str) -> InstancePage:
        """A page of instances; raises BAD_PAGE_TOKEN."""
        query, limit = ("instances", ended), page_size(size)
        before = int(read_token(token, query, shape=[int], field=TOKEN)[0]) if token else 0
        found = await self._store.list_instances(ended=ended, before=before, limit=limit + 1)
        page = found[:limit]
        following = next_token(query, [page[-1].id]) if len(found) > limit else ""
        return InstancePage(tuple(page), following)

    async def spend(
        self, queue: QueueName | None, *, from_at: float, step_s: float
    ) -> SpendOverTime:
        """What was spent; steps are whole hours."""
        now = self._books.clock.now()
        start, step = _span(from_at or now - DAY_S, step_s or HOUR_S, now=now)
        policies = {each.queue: each.budget for each in await self._store.policies()}
        states = {each.queue: each for each in await self._store.budgets()}
        views = [
            SpendView(states.get(each, BudgetState(each)), policies.get(each, NO_BOUND))
            for each in sorted(set(states) | set(policies), key=lambda name: name or "")
        ]
        hours = await self._store.spent(queue, since=start, until=now)
        mine = next((view for view in views if view.state.queue == queue), None)
        return SpendOverTime(
            mine or SpendView(BudgetState(queue)),
            tuple(view for view in views if view.state.queue is not None),
            start,
            step,
            _buckets(hours, start, step, now=now),
        )


def _span(from_at: float, step_s: float, *, now: float) -> tuple[float, float]:
    if step_s < HOUR_S or step_s % HOUR_S:
        raise _invalid("step_s", "is no whole number of hours")
    start = from_at // HOUR_S * HOUR_S
    if not 0 <= start <= now:
        raise _invalid("from_at", "is not in the past")
    if (now - start) / step_s > MOST_BUCKETS:
        raise _invalid("step_s", f"makes more than {MOST_BUCKETS:,} buckets of the time since then")
    return start, step_s


def _buckets(
    hours: Sequence[tuple[int, int]], start: float, step: float, *, now: float
) -> tuple[int, ...]:
    found = [0] * (int((now - start) // step) + 1)
    for hour, amount in hours:
        found[min(len(found) - 1, max(0, int((hour - start) // step)))] += amount
    return tuple(found)


def _invalid(field_name: str, message: str) -> InvalidInput:
    return InvalidInput((FieldViolation(field_name, message),))
