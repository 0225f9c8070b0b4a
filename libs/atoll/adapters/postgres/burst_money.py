"""Budgets and the ledger."""

from collections import Counter
from collections.abc import Iterable, Sequence

from atoll.adapters.postgres.burst_rows import queue_from
from atoll.adapters.postgres.burst_sql import (
    COUNT,
    GIVE_BACK,
    LEDGER,
    LOCK_BUDGETS,
    LOCK_INSTANCES,
    PAY,
    TAKE_BUDGET,
)
from atoll.adapters.postgres.sql import Sql
from atoll.core.model.burst import chain_of
from atoll.core.model.burst_time import month_of
from atoll.core.model.ids import QueueName
from atoll.ports.store.burst import BudgetShort, SpendEntry


async def lock_budgets(sql: Sql, queues: Iterable[QueueName | None]) -> list[str]:
    """Lock budgets from all together down; their names in the table."""
    names = sorted({queue or "" for queue in queues})
    for statement in LOCK_BUDGETS:
        await sql.rows(statement, names)
    return names


async def take_budget(
    sql: Sql, queue: QueueName | None, *, rate: int, ahead: int
) -> BudgetShort | None:
    """Bind a rate for a queue and all above it, or say why not."""
    names = await lock_budgets(sql, chain_of(queue))
    row = await sql.row(TAKE_BUDGET, names, rate, ahead)
    if row is None:
        return None
    asked = rate if row["bound"] == "per_hour" else ahead
    return BudgetShort(
        queue_from(row["queue"]), row["bound"], row["most"], left=row["rest"], asked=asked
    )


async def give_back_budget(sql: Sql, queue: QueueName | None, rate: int) -> None:
    """Unbind a rate."""
    await sql.run(GIVE_BACK, await lock_budgets(sql, chain_of(queue)), rate)


async def spend(sql: Sql, entries: Sequence[SpendEntry]) -> None:
    """Add to the ledger, to the instances, and to the budgets of the queues and all above them."""
    if not entries:
        return
    await _pay(sql, entries)
    await lock_budgets(sql, (each for entry in entries for each in chain_of(entry.queue)))
    await _write_ledger(sql, entries)
    for hour in sorted({entry.hour for entry in entries}):
        await _count(sql, hour, [entry for entry in entries if entry.hour == hour])


async def _pay(sql: Sql, entries: Sequence[SpendEntry]) -> None:
    paid: Counter[int] = Counter()
    for entry in entries:
        paid[entry.instance] += entry.amount
    await sql.rows(LOCK_INSTANCES, sorted(paid))
    await sql.run(PAY, list(paid), list(paid.values()))


async def _write_ledger(sql: Sql, entries: Sequence[SpendEntry]) -> None:
    amounts: Counter[tuple[int, int, str]] = Counter()
    for entry in entries:
        amounts[entry.hour, entry.instance, entry.queue or ""] += entry.amount
    rows = [(*key, amount) for key, amount in sorted(amounts.items())]
    await sql.run(LEDGER, *(list(column) for column in zip(*rows, strict=True)))


async def _count(sql: Sql, hour: int, entries: Sequence[SpendEntry]) -> None:
    amounts: Counter[str] = Counter()
    for entry in entries:
        for queue in chain_of(entry.queue):
            amounts[queue or ""] += entry.amount
    await sql.run(COUNT, list(amounts), list(amounts.values()), hour, month_of(hour))
