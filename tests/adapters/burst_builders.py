"""What is rented, for tests of the store, and the ways in which the service writes it."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from atoll.core.model.burst import (
    MICROS,
    Budget,
    BurstPolicy,
    Instance,
    InstanceId,
    InstanceState,
    Market,
    Offer,
)
from atoll.core.model.ids import DEFAULT_SHARD, QueueName
from atoll.ports.store.burst import BudgetShort, BurstTx, NewInstance
from tests.adapters.store_worlds import Store

NLP = QueueName("nlp")
EXAMS = QueueName("nlp.exams")
VISION = QueueName("vision")
DOLLAR = MICROS
TOKEN_HASH = hashlib.sha256(b"secret").digest()


def offer(**given: object) -> Offer:
    fields: dict[str, object] = {
        "provider": "cloud",
        "zone": "eu-1a",
        "region": "eu-1",
        "instance_type": "big",
        "market": Market.SPOT,
        "cpu_milli": 64_000,
        "memory_bytes": 1 << 38,
        "kind": "H100",
        "devices": 2,
        "price": 3 * DOLLAR,
        **given,
    }
    return Offer(**fields)  # type: ignore[arg-type]


def wish(token: str = "one", **given: object) -> NewInstance:
    fields: dict[str, object] = {
        "offer": offer(),
        "state": InstanceState.REQUESTED,
        "requested_at": 10.0,
        **given,
    }
    instance = Instance(InstanceId(0), token, **fields)  # type: ignore[arg-type]
    return NewInstance(instance, TOKEN_HASH, DEFAULT_SHARD, ready_at=300.0, give_up_at=900.0)


async def rent(store: Store, token: str = "one", **given: object) -> Instance:
    """An instance as the broker records it, in a transaction of its own."""
    async with store.burst.begin() as tx:
        (made,) = await tx.add_instances([wish(token, **given)])
    return made


async def set_policy(store: Store, queue: QueueName | None, **given: object) -> BurstPolicy:
    """A policy; `per_hour` and `per_month` are its budget."""
    hour, month = given.pop("per_hour", None), given.pop("per_month", None)
    budget = Budget(hour, month)  # type: ignore[arg-type]
    policy = BurstPolicy(queue, allowed=True, budget=budget, **given)  # type: ignore[arg-type]
    async with store.burst.begin() as tx:
        await tx.lock_policy(queue)
        await tx.put_policy(policy)
    return policy


async def take(
    store: Store, queue: QueueName | None, *, rate: int, ahead: int = 0
) -> BudgetShort | None:
    async with store.burst.begin() as tx:
        return await tx.take_budget(queue, rate=rate, ahead=ahead)


async def move(store: Store, each: Instance, state: InstanceState, **given: object) -> Instance:
    """An instance as it is from now on."""
    async with store.burst.begin() as tx:
        stands = (await tx.lock_instances([each.id]))[each.id]
        await tx.update_instances([replace(stands, state=state, **given)])  # type: ignore[arg-type]
    return (await store.burst.instances([each.id]))[each.id]


async def take_and_add(tx: BurstTx, wanted: Sequence[NewInstance]) -> list[Instance]:
    """Those for which there is money, as the broker rents them."""
    paid = [
        each
        for each in wanted
        if await tx.take_budget(each.instance.queue, rate=each.instance.offer.price, ahead=0)
        is None
    ]
    return await tx.add_instances(paid)
