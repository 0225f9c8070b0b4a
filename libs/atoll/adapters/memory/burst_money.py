"""Budgets and the ledger in memory."""

from collections.abc import Iterator
from dataclasses import replace

from atoll.adapters.memory.burst_rows import BudgetRow, BurstRows, LedgerRow
from atoll.core.model.burst import ENDED, BurstPolicy, Instance, chain_of
from atoll.core.model.burst_time import HOUR_S, hour_of, month_of
from atoll.core.model.ids import QueueName
from atoll.ports.store.burst import TO_END_S, BudgetShort, SpendEntry


def shortage(
    rows: BurstRows, queue: QueueName | None, *, now: float, rate: int, ahead: int
) -> BudgetShort | None:
    """Which bound of one budget a rent would break."""
    budget = (rows.policies.get(queue) or BurstPolicy(queue)).budget
    stands = rows.budgets.get(queue) or BudgetRow()
    bound, limit = stands.rate, budget.per_hour
    if limit is not None and bound + rate > limit:
        return BudgetShort(queue, "per_hour", limit, left=max(0, limit - bound), asked=rate)
    spent = stands.state(queue, hour_at=hour_of(now), month_at=month_of(now)).month
    committed = spent + _uncounted(rows, queue, now) + _to_end(bound)
    limit = budget.per_month
    if limit is not None and committed + ahead > limit:
        return BudgetShort(queue, "per_month", limit, left=max(0, limit - committed), asked=ahead)
    return None


def add_spend(rows: BurstRows, entry: SpendEntry) -> None:
    """Add to the ledger, to the instance, and to the budgets of the queue and all above it."""
    key = (entry.hour, entry.instance)
    stands = rows.ledger.get(key) or LedgerRow(entry.queue, 0)
    rows.ledger.put(key, replace(stands, amount=stands.amount + entry.amount))
    row = rows.instances.get(entry.instance)
    if row is not None:
        paid = replace(row.instance, spent=row.instance.spent + entry.amount)
        rows.instances.put(entry.instance, replace(row, instance=paid))
    month_at = month_of(entry.hour)
    for each in chain_of(entry.queue):
        budget = rows.budgets.get(each) or BudgetRow()
        spent = budget.spent(entry.amount, hour_at=entry.hour, month_at=month_at)
        rows.budgets.put(each, spent)


def _uncounted(rows: BurstRows, queue: QueueName | None, now: float) -> int:
    return sum(_since_counted(each, now) for each in _live_of(rows, queue))


def _live_of(rows: BurstRows, queue: QueueName | None) -> Iterator[Instance]:
    live = (r.instance for r in rows.instances.values() if r.instance.state not in ENDED)
    return (each for each in live if queue in chain_of(each.queue))


def _since_counted(instance: Instance, now: float) -> int:
    if not instance.created_at:
        return 0
    return max(
        0, int(instance.offer.price * (now - instance.created_at) // HOUR_S) - instance.spent
    )


def _to_end(rate: int) -> int:
    return int(rate * TO_END_S) // HOUR_S
