"""Sentences that several use cases say."""

from atoll.core.engine.choice.worth import dollars
from atoll.core.model.ids import QueueName
from atoll.ports.store.burst import BudgetShort


def whose(queue: QueueName | None) -> str:
    """Whose budget or policy it is."""
    return f"queue {queue}" if queue else "all queues"


def short_in_words(short: BudgetShort) -> str:
    """Which budget has too little left, with its numbers."""
    span = "an hour" if short.bound == "per_hour" else "this month"
    return (
        f"the budget of {whose(short.queue)} is {dollars(short.limit)} {span}, "
        f"{dollars(max(0, short.left))} of it is left, {dollars(short.asked)} is asked for"
    )
