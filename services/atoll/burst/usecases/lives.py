"""Carries the instances of one provider through their lives, step by step.

Rows come first: what is to exist is written before the provider is asked, and what is to end is
written before it is told to. What the provider answers is judged under the rows' locks, by the
same pure step again: somebody may have released an instance while it was being created.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from atoll.burst.usecases.desk import Desk
from atoll.burst.usecases.retries import by_hand, elsewhere, tried_elsewhere
from atoll.burst.usecases.term import Happened, Term
from atoll.core.engine.burst.broker.ground import NO_USE, Use, type_key
from atoll.core.engine.burst.broker.life import Act, Seen, Sight, Step, applied, idle_since, step
from atoll.core.engine.burst.broker.spend import uncounted
from atoll.core.model.burst import Instance, InstanceId
from atoll.core.model.ids import QueueName
from atoll.ports.provider import (
    NoCapacity,
    Provider,
    ProviderRefused,
    ProviderUnavailable,
    Sighting,
)
from atoll.ports.store.burst import BurstTx, SpendEntry

TELL_AGAIN_S: Final = 5.0
"""Between two times that a provider is told to end the same instance."""
ENDS: Final = frozenset({Act.ENDED, Act.FAILED})

Sights = Mapping[InstanceId, Seen]
"""What the provider says; who is not in it: it did not answer."""
Uses = Mapping[InstanceId, Use]


@dataclass(slots=True)
class Lives:
    """The instances that one desk deals with."""

    term: Term
    desk: Desk
    mine: Callable[[str], bool]
    """Whether a provider's instances are dealt with here."""
    _told: dict[InstanceId, float] = field(default_factory=dict)
    """When the provider was last told to end one; monotonic."""

    async def look(self) -> list[Happened]:
        """Look at each once, and take the next step with it; what happened."""
        rows = [r for r in await self.term.books.store.live_instances() if self._is_mine(r)]
        if not rows:
            self._told.clear()
            return []
        uses = await uses_of(self.term, rows)
        seen = await self._described(rows)
        now = await self.term.now()
        seen |= await self._created(rows, seen, uses, now=now)
        moving = [row for row in rows if self._moves(row, seen, uses, now=now)]
        happened = await self._write(moving, seen, uses) if moving else []
        # As they were, or as they are now: a provider is told to end what the rows say is to end.
        now_rows = {each.instance.id: each.instance for each in happened}
        rows = [now_rows.get(row.id, row) for row in rows]
        await self._end(rows, seen, uses, now=now)
        return happened

    def _is_mine(self, row: Instance) -> bool:
        return self.mine(row.offer.provider)

    def _step(self, row: Instance, seen: Sights, uses: Uses, *, now: float) -> Step:
        use = uses.get(row.id, NO_USE)
        return step(row, seen.get(row.id), use, now=now, terms=self.term.life)

    def _judged(
        self, row: Instance, seen: Sights, uses: Uses, *, now: float
    ) -> tuple[Instance, Step]:
        """The row as it is to be, and what is to be done with it."""
        done, use = self._step(row, seen, uses, now=now), uses.get(row.id, NO_USE)
        return _after(row, done, seen.get(row.id), use=use, now=now), done

    async def _described(self, rows: Sequence[Instance]) -> dict[InstanceId, Seen]:
        tokens = [row.token for row in rows]
        try:
            found = await self.desk.ask(lambda provider: provider.describe(tokens))
        except ProviderUnavailable:
            return {}
        by_token = {each.token: each for each in found}
        return {row.id: seen_of(by_token.get(row.token)) for row in rows}

    async def _created(
        self, rows: Sequence[Instance], seen: Sights, uses: Uses, *, now: float
    ) -> dict[InstanceId, Seen]:
        wanted = [r for r in rows if self._step(r, seen, uses, now=now).act is Act.CREATE]
        answers = await asyncio.gather(*(self._create(row) for row in wanted))
        return {row.id: answer for row, answer in zip(wanted, answers, strict=True)}

    async def _create(self, row: Instance) -> Seen:
        order = self.term.books.order(row)
        try:
            return seen_of(await self.desk.ask(lambda provider: provider.create(order)))
        except ProviderUnavailable as away:
            # Nobody knows whether it happened: the same token is asked for again later.
            return Seen(Sight.UNKNOWN, message=str(away))
        except (NoCapacity, ProviderRefused) as refusal:
            return Seen(Sight.REFUSED, message=str(refusal))

    def _moves(self, row: Instance, seen: Sights, uses: Uses, *, now: float) -> bool:
        after, _ = self._judged(row, seen, uses, now=now)
        return after != row

    async def _write(self, moving: Sequence[Instance], seen: Sights, uses: Uses) -> list[Happened]:
        idle: list[tuple[str, float]] = []
        books = self.term.books
        places = await elsewhere(books, moving)
        ids = [row.id for row in moving]

        async def change(tx: BurstTx) -> list[Happened]:
            now = await tx.now()
            locked = (await tx.lock_instances(ids)).values()
            judged = [(row, *self._judged(row, seen, uses, now=now)) for row in locked]
            idle[:] = [_was_idle(row, now) for row, new, done in judged if _works(row, new, done)]
            # First, so that what is tried elsewhere can have it.
            await _give_back(tx, [row for row, _, done in judged if done.act in ENDS])
            for _, new, done in judged:
                if done.retry and places is not None and by_hand(new):
                    await tried_elsewhere(tx, books, new, places=places, now=now)
            after = [new for _, new, _ in judged]
            await tx.update_instances(after)
            await tx.spend([e for row in after if row.ended_at for e in entries(row, now=now)])
            return [Happened(done.act.value, new, done.why) for _, new, done in judged]

        happened = await self.term.write(change)
        for key, seconds in idle:
            self.term.was_idle(key, seconds)
        return happened

    async def _end(self, rows: Sequence[Instance], seen: Sights, uses: Uses, *, now: float) -> None:
        steady = self.term.books.clock.monotonic()
        wanted = [
            row
            for row in rows
            if row.provider_id
            and self._step(row, seen, uses, now=now).act is Act.TERMINATE
            and steady >= self._told.get(row.id, -TELL_AGAIN_S) + TELL_AGAIN_S
        ]
        self._told |= {row.id: steady for row in wanted}
        await asyncio.gather(*(end(self.desk, row.provider_id) for row in wanted))


async def end(desk: Desk, provider_id: str) -> bool:
    """Tell the provider to end an instance; whether it has heard."""

    async def call(provider: Provider) -> None:
        await provider.terminate(provider_id)

    try:
        await desk.ask(call)
    except (ProviderUnavailable, ProviderRefused):
        return False
    return True


def seen_of(sighting: Sighting | None) -> Seen:
    """What a provider said, as lives are judged by it."""
    if sighting is None:
        return Seen(Sight.ABSENT)
    return Seen(
        Sight(sighting.phase.value),
        sighting.provider_id,
        created_at=sighting.created_at,
        interrupted_at=sighting.interrupted_at,
        message=sighting.message,
    )


def entries(row: Instance, *, now: float) -> list[SpendEntry]:
    """What is to be counted of an instance now."""
    return [SpendEntry(row.id, row.queue, hour, amount) for hour, amount in uncounted(row, now=now)]


async def uses_of(term: Term, rows: Sequence[Instance]) -> dict[InstanceId, Use]:
    """What goes on on instances."""
    by_cluster = {use.cluster: use for use in await term.books.store.uses()}
    return {
        row.id: Use(use.joined, use.live_attempts, use.held)
        for row in rows
        if (use := by_cluster.get(row.cluster)) is not None
    }


async def _give_back(tx: BurstTx, rows: Sequence[Instance]) -> None:
    """Unbind what instances had bound that are gone."""
    freed: Counter[QueueName | None] = Counter()
    for row in rows:
        freed[row.queue] += row.offer.price
    for queue, rate in freed.items():
        await tx.give_back_budget(queue, rate=rate)


def _works(row: Instance, new: Instance, done: Step) -> bool:
    """Whether something runs where nothing ran."""
    return bool(row.idle_since and not new.idle_since and done.act is Act.WAIT)


def _was_idle(row: Instance, now: float) -> tuple[str, float]:
    return type_key(row.offer), now - row.idle_since


def _after(row: Instance, done: Step, seen: Seen | None, *, use: Use, now: float) -> Instance:
    """The row after a step, or as it is when nothing of it changed."""
    new = replace(applied(row, done, seen, now=now), stop_at=done.stop_at or row.stop_at)
    return replace(new, idle_since=idle_since(new, use, now=now))
