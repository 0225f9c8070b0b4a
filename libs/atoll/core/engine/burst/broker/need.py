"""How much is to be held of each device kind, by what is foreseen: the newsvendor's amount.

A device hour too few costs what the delay is worth, less what renting it would have cost; one too
many costs its price. All hours of the time in question count alike, in each of the futures.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from atoll.core.engine.burst.amount import Amount, amount_to_hold, mean_cost
from atoll.core.engine.burst.broker.cover import is_open
from atoll.core.engine.burst.broker.ground import Ground, Outlook
from atoll.core.engine.burst.broker.memory import Pool
from atoll.core.engine.choice.worth import USUAL_HOUR
from atoll.core.model.burst import MICROS, Instance, chain_of
from atoll.core.model.burst_rules import policy_of
from atoll.core.model.ids import QueueName

MOST_FUTURES: Final = 1000
LEAST_PRICE: Final = 1e-6
"""Dollars: what costs nothing is not held without end."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a pool is to hold, in devices, and what it rests on."""

    pool: Pool
    amount: Amount
    held: int
    value: float
    """Dollars that an hour of a device too few costs."""
    price: float
    """Dollars of an hour of a device."""
    futures: tuple[int, ...]

    def cost_of(self, held: int) -> float:
        """Dollars an hour that holding so much is expected to cost."""
        underage, overage = max(0.0, self.value - self.price), max(self.price, LEAST_PRICE)
        return mean_cost(self.futures, held, underage=underage, overage=overage)


def need_of(
    ground: Ground, outlook: Outlook, *, price: int, held: int, since_s: float, until_s: float
) -> Need:
    """Over a time from now; `price`: micro-dollars of an hour of a device, `held`: devices."""
    value = (policy_of(ground.policies, outlook.queue).hour_of_delay or USUAL_HOUR) / MICROS
    each = price / MICROS
    futures = _futures(outlook, since_s, until_s)
    amount = amount_to_hold(
        futures,
        underage=max(0.0, value - each),
        overage=max(each, LEAST_PRICE),
        held=held,
        band=ground.options.band,
    )
    pool = Pool(outlook.kind, outlook.queue)
    return Need(pool, amount, held, value, each, futures)


def belongs(instance: Instance, pool: Pool) -> bool:
    """Whether an instance is of a pool: of its kind, and paid by its queue or one below."""
    return instance.offer.kind == pool.kind and pool.queue in chain_of(instance.queue)


def held_in(instances: Iterable[Instance], pool: Pool) -> int:
    """Devices that are rented and not to be ended."""
    return sum(i.offer.units for i in instances if is_open(i) and belongs(i, pool))


def pays_for(pool_queue: QueueName | None, queue: QueueName | None) -> bool:
    """Whether what a queue rents counts for a pool."""
    return pool_queue in chain_of(queue)


def _futures(outlook: Outlook, since_s: float, until_s: float) -> tuple[int, ...]:
    """Devices missing, of equally likely futures and steps, not too many; none foreseen: none."""
    if not outlook.excess.size:
        return (0,)
    horizon = outlook.excess.shape[1]
    first = min(int(since_s // outlook.step_s), horizon - 1)
    last = min(max(math.ceil(until_s / outlook.step_s), first + 1), horizon)
    flat = np.maximum(np.ceil(outlook.excess[:, first:last] - 1e-9), 0).ravel()
    if flat.size > MOST_FUTURES:
        flat = np.quantile(flat, (np.arange(MOST_FUTURES) + 0.5) / MOST_FUTURES, method="lower")
    return tuple(flat.astype(int).tolist())
