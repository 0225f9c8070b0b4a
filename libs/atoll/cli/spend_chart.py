"""Spending against budgets as bars of characters."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from atoll.cli.burst_text import queue_text
from atoll.cli.moments import lasting
from atoll.cli.money import money, money_or, part
from atoll.cli.render import aligned
from atoll.client.burst_views import SpendHistory, SpendInfo

SPENT, LEFT, BOUND = "█", "·", "│"
STYLES: Final = {SPENT: "cyan", BOUND: "red"}
BAR: Final = 20
"""Cells of a bar of a budget."""
BESIDE: Final = 30
"""Characters beside a bar over time."""
HOUR_S: Final = 3600


def chart(found: SpendHistory, *, columns: int) -> Iterator[str]:
    """What is spent of each budget, then what was spent by step."""
    yield from budgets([found.spend, *found.queues])
    if any(found.spent):
        yield ""
        yield from over_time(found, max(BAR, columns - BESIDE))
    else:
        yield f"nothing was spent in the last {lasting(len(found.spent) * found.step_s)}"


def budgets(spends: Iterable[SpendInfo]) -> list[str]:
    """A table: what is spent of each budget."""
    rows = [("QUEUE", "NOW", "THIS HOUR", "OF", "", "THIS MONTH", "OF", "")]
    rows += [
        (
            queue_text(each.queue),
            f"{money(each.rate_per_hour)}/h",
            money(each.hour),
            money_or(each.budget.per_hour),
            bar(each.hour, each.budget.per_hour),
            money(each.month),
            money_or(each.budget.per_month),
            bar(each.month, each.budget.per_month),
        )
        for each in spends
    ]
    return aligned(rows, (False, True, True, True, False, True, True, False))


def bar(spent: Decimal, of: Decimal | None) -> str:
    """`████················  20 %`; empty without a budget, or with nothing to spend."""
    if not of:
        return ""
    share = part(spent, of)
    full = max(round(BAR * share), int(spent > 0))
    return f"{SPENT * full}{LEFT * (BAR - full)} {100 * share:3.0f} %"


def over_time(found: SpendHistory, width: int) -> Iterator[str]:
    """A bar for each step from the first with spending on, and where the budget ends."""
    bound = step_budget(found)
    top = max([*found.spent, bound or Decimal(0)])
    first = next(n for n, spent in enumerate(found.spent) if spent)
    for number, spent in enumerate(found.spent[first:], start=first):
        at = datetime.fromtimestamp(found.from_at + number * found.step_s, UTC)
        line = _line(spent, bound, top=top, width=width)
        yield f"{at:%a %d %H:%M} {money(spent):>12}  {line}".rstrip()
    told = f"{SPENT} spent in {lasting(found.step_s)}"
    yield told + (f", {BOUND} the budget of {money(bound)}" if bound is not None else "")


def step_budget(found: SpendHistory) -> Decimal | None:
    """What the budget of an hour lets a step cost."""
    per_hour = found.spend.budget.per_hour
    return None if per_hour is None else per_hour * Decimal(found.step_s) / HOUR_S


def _line(spent: Decimal, bound: Decimal | None, *, top: Decimal, width: int) -> str:
    cells = [SPENT if n < _cells(spent, top, width) else " " for n in range(width)]
    if bound is not None:
        cells[min(width - 1, _cells(bound, top, width))] = BOUND
    return "".join(cells)


def _cells(amount: Decimal, top: Decimal, width: int) -> int:
    return max(round((width - 1) * float(amount / top)), int(amount > 0)) if top else 0


def months(found: SpendHistory) -> Sequence[SpendInfo]:
    """Whose spending of the month is worth a bar."""
    return [found.spend, *(each for each in found.queues if each.month or each.budget.per_month)]
