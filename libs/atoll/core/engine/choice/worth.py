"""What waiting costs a queue, and how times and money are said."""

from collections.abc import Sequence
from typing import Final

from atoll.core.model.burst import MICROS
from atoll.core.model.burst_rules import Policies, policy_of
from atoll.core.model.burst_wants import Ask
from atoll.core.model.ids import QueueName
from atoll.core.model.resources import BLOCKS_PER_DEVICE

USUAL_HOUR: Final = MICROS
"""Micro-dollars that an hour of waiting of one device costs where no policy says it."""
HOUR_S: Final = 3600.0
_MINUTE_S: Final = 60.0
_DAY_S: Final = 24 * HOUR_S


def hour_of(
    policies: Policies, queue: QueueName, asks: Sequence[Ask], *, usual: int = USUAL_HOUR
) -> int:
    """Micro-dollars that an hour of waiting of a job costs its queue, by the first of `asks`.

    A job without devices counts as one device.
    """
    each = policy_of(policies, queue).hour_of_delay or usual
    blocks = asks[0].blocks if asks else 0
    return round(each * (blocks or BLOCKS_PER_DEVICE) / BLOCKS_PER_DEVICE)


def delay_cost(hour: int, *, now: float, until: float) -> int:
    """Micro-dollars of the time from now until then. `hour`: what an hour costs."""
    return round(hour * max(0.0, until - now) / HOUR_S)


def in_words(seconds: float) -> str:
    """`40 s`, `6 min`, `3 h 10 min`, `2 d 4 h`: a length of time."""
    if seconds < _MINUTE_S:
        return f"{max(0.0, seconds):.0f} s"
    if seconds < HOUR_S - _MINUTE_S / 2:
        return f"{round(seconds / _MINUTE_S)} min"
    if seconds < 2 * _DAY_S:
        hours, minutes = divmod(round(seconds / _MINUTE_S), 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(seconds / HOUR_S), 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def dollars(micros: int) -> str:
    """`$3.10`, `$0.012`: up to four digits of what is less than a dollar, at least two."""
    amount = micros / MICROS
    if abs(amount) >= 1:
        return f"${amount:.2f}"
    return f"${f'{amount:.4f}'.rstrip('0'):0<4}"
