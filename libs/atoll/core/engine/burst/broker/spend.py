"""What an instance costs, by the second: split over full hours, with nothing lost or counted twice.

What is due at a time is a whole function of the time alone, so that what was counted says where to
go on: repeated, late or lost counts make no difference to the sum.
"""

from typing import NamedTuple

from atoll.core.model.burst import Instance

HOUR_S = 3600
"""A full hour, UTC; months end at full hours, so an hour belongs to one month."""


class Spent(NamedTuple):
    """What one full hour adds."""

    hour: int
    """Unix seconds of its begin."""
    amount: int
    """Micro-dollars."""


def due(instance: Instance, *, now: float) -> int:
    """Micro-dollars of whole seconds from its creation until now, or until its end."""
    if not instance.created_at:
        return 0
    until = min(now, instance.ended_at) if instance.ended_at else now
    seconds = max(0, int(until) - int(instance.created_at))
    return seconds * instance.offer.price // HOUR_S


def uncounted(instance: Instance, *, now: float) -> tuple[Spent, ...]:
    """What was not counted yet (instance.spent was), by full hours; none when the clock went back.

    To be written in the same transaction as the instance's `spent`.
    """
    left, found = due(instance, now=now) - instance.spent, list[Spent]()
    until = min(now, instance.ended_at) if instance.ended_at else now
    hour = int(until) // HOUR_S * HOUR_S
    while left > 0:
        before = due(instance, now=hour) if hour > instance.created_at else 0
        amount = min(left, due(instance, now=until) - before)
        if amount > 0:
            found.append(Spent(hour, amount))
        left, until, hour = left - amount, float(hour), hour - HOUR_S
    return tuple(reversed(found))
