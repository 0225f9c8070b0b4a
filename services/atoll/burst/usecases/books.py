"""What every replica needs to write: the store, the terms on which is rented, who is woken."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from atoll.core.engine.burst.broker.ground import Options, Rent
from atoll.core.engine.burst.broker.life import LifeTerms, boot_limit_s
from atoll.core.model.burst import EndCause, Instance, InstanceId, InstanceState
from atoll.core.model.ids import DEFAULT_SHARD, ShardId
from atoll.ports.clock import Clock, Ids
from atoll.ports.notify import Notifier
from atoll.ports.provider import CLUSTER_TAG, DEPLOYMENT_TAG, TOKEN_TAG, CreateOrder
from atoll.ports.store.burst import BurstStore, BurstTx, NewInstance
from atoll.ports.store.retry import retrying

T = TypeVar("T")

TRIES: Final = 12
"""Of a transaction while others rent at the same last dollar."""
NO_INSTANCE: Final = InstanceId(0)


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms instances are rented."""

    join_secret: bytes = field(default=b"", repr=False)
    """From it and an instance's token comes the word with which its agent joins."""
    shard: ShardId = DEFAULT_SHARD
    deployment: str = "atoll"
    """Tag of what is rented."""
    life: LifeTerms = field(default_factory=LifeTerms)
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class Ending:
    """How an instance is to end."""

    cause: EndCause
    why: str
    stop_at: float
    """What still runs is told to stop then."""
    drain_by: float
    """It is ended then, whatever runs."""


class Books:
    """One process's way to write what is rented."""

    def __init__(
        self, store: BurstStore, terms: Terms, *, notifier: Notifier, clock: Clock, ids: Ids
    ) -> None:
        self.store = store
        self.terms = terms
        self.clock = clock
        self.ids = ids
        self._notifier = notifier

    async def write(self, change: Callable[[BurstTx], Awaitable[T]], *, quietly: bool = False) -> T:
        """Commit what `change` does, which may run several times; then wake those who follow.

        Quietly: nobody need look at it, and whoever is woken by it would write it again.
        """

        async def once() -> T:
            async with self.store.begin() as tx:
                return await change(tx)

        try:
            return await retrying(once, clock=self.clock, ids=self.ids, attempts=TRIES)
        finally:
            if not quietly:
                self.ring()

    def ring(self) -> None:
        """Let others look."""
        self._notifier.ring()

    def fresh(self, rent: Rent, *, now: float, keep_until: float = 0.0) -> NewInstance:
        """A row for an instance that nobody has been asked for yet."""
        token = self.ids.uuid()
        row = Instance(
            NO_INSTANCE,
            token,
            rent.offer,
            InstanceState.REQUESTED,
            now,
            queue=rent.queue,
            jobs=rent.jobs,
            why=rent.why,
            keep_until=keep_until,
        )
        word = join_token(self.terms.join_secret, token)
        return NewInstance(
            row,
            join_hash=hashlib.sha256(word.encode()).digest(),
            shard=self.terms.shard,
            ready_at=now + rent.offer.lead_s,
            give_up_at=now + boot_limit_s(rent.offer, self.terms.life),
        )

    def order(self, row: Instance) -> CreateOrder:
        """What a provider is asked for, the same each time."""
        word = join_token(self.terms.join_secret, row.token)
        tags = {
            TOKEN_TAG: row.token,
            CLUSTER_TAG: row.cluster,
            DEPLOYMENT_TAG: self.terms.deployment,
        }
        return CreateOrder(row.token, row.offer, row.cluster, word, tags)

    def ended_by(self, row: Instance, *, now: float, how: Ending) -> Instance:
        """A row on its way to its end; one that is further on its way stays as it is."""
        told = replace(row, cause=how.cause, message=how.why)
        match row.state:
            case InstanceState.REQUESTED | InstanceState.BOOTING:
                settled = now + self.terms.life.settle_s
                return replace(told, state=InstanceState.TERMINATING, drain_by=settled)
            case InstanceState.READY:
                return replace(
                    told,
                    state=InstanceState.DRAINING,
                    stop_at=how.stop_at,
                    drain_by=how.drain_by,
                )
            case InstanceState.DRAINING if how.drain_by < row.drain_by:
                return replace(row, stop_at=min(row.stop_at, how.stop_at), drain_by=how.drain_by)
            case _:
                return row


def join_token(secret: bytes, token: str) -> str:
    """The one-time word with which an instance's agent joins: the same from any replica."""
    return hmac.new(secret, token.encode(), hashlib.sha256).hexdigest()
