"""Lets the broker decide on what is known now, and writes what it decided: rows, not calls."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from atoll.burst.usecases.books import Ending
from atoll.burst.usecases.busy import Busy
from atoll.burst.usecases.foresight import Foresight
from atoll.burst.usecases.lives import uses_of
from atoll.burst.usecases.term import Happened, Term
from atoll.burst.usecases.words import short_in_words
from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Deeds, Drain, Ground, Rent, Room
from atoll.core.engine.burst.broker.retry import setbacks_of
from atoll.core.engine.burst.broker.rooms import room_of
from atoll.core.model.burst_rules import Policies
from atoll.core.model.burst_wants import BurstDecision
from atoll.core.model.ids import QueueName
from atoll.ports.store.burst import TO_END_S, BurstTx

LATELY: Final = 300
"""Instances that are looked at for what failed lately."""
RENT: Final = "rent"
DRAIN: Final = "drain"


@dataclass(slots=True)
class Decider:
    """Of one term."""

    term: Term
    foresight: Foresight
    _busy: Busy = field(init=False)

    def __post_init__(self) -> None:
        self._busy = Busy(self.foresight.follower)

    async def look(self) -> list[Happened]:
        """Decide once; what came of it."""
        ground = await self.ground()
        return await self.carry_out(await asyncio.to_thread(decide, ground))

    async def carry_out(self, deeds: Deeds) -> list[Happened]:
        """Write what was decided, as far as budgets bear it by now."""
        happened = [*await self._rents(deeds), *await self._drains(deeds)]
        self.term.memory = deeds.memory
        await self._say(deeds)
        await self.term.keep()
        return happened

    async def ground(self) -> Ground:
        """All that is known now."""
        term, store = self.term, self.term.books.store
        rows = await store.live_instances()
        lately = await store.list_instances(ended=True, before=0, limit=LATELY)
        wants, uses, now = await store.wants(), await uses_of(term, rows), await term.now()
        policies = {each.queue: each for each in await store.policies()}
        await self._busy.look(store, rows, wants, uses=uses, policies=policies, now=now)
        return Ground(
            now,
            wants=tuple(wants),
            instances=tuple(rows),
            uses=uses,
            offers=tuple(await store.offers()),
            policies=policies,
            budgets=await self._rooms(policies),
            outlooks=self.foresight.ahead(now),
            idle_s=dict(term.idle_s),
            setbacks=setbacks_of(lately, now=now),
            spare=self._busy.spare,
            came=self._busy.came,
            memory=term.memory,
            options=term.books.terms.options,
        )

    async def _rooms(self, policies: Policies) -> dict[QueueName | None, Room]:
        # What take_budget holds back, so that it does not refuse what was decided here.
        end_s = max(TO_END_S, self.term.books.terms.options.end_s)
        return {
            state.queue: room_of(
                policies[state.queue].budget, rate=state.rate, month=state.month, end_s=end_s
            )
            for state in await self.term.books.store.budgets()
            if state.queue in policies
        }

    async def _rents(self, deeds: Deeds) -> list[Happened]:
        said = [each for each in deeds.decisions if each.action == RENT]
        return [await self._rent(rent, about) for rent, about in paired(deeds.rents, said)]

    async def _rent(self, rent: Rent, said: Sequence[BurstDecision]) -> Happened:
        """One transaction each: the budget, the row, and the decisions; or why not."""
        books = self.term.books

        async def change(tx: BurstTx) -> Happened:
            now = await tx.now()
            short = await tx.take_budget(rent.queue, rate=rent.offer.price, ahead=rent.ahead)
            fresh = books.fresh(rent, now=now)
            if short is not None:
                why = f"not rented: {short_in_words(short)}"
                none = [replace(each, at=now, action="none", why=why) for each in said]
                await tx.add_decisions(none)
                return Happened("short", fresh.instance, why)
            (made,) = await tx.add_instances([fresh])
            await tx.add_decisions([replace(each, at=now, instances=(made.id,)) for each in said])
            return Happened(RENT, made, rent.why)

        return await self.term.write(change)

    async def _drains(self, deeds: Deeds) -> list[Happened]:
        if not deeds.drains:
            return []
        said = [each for each in deeds.decisions if each.action == DRAIN]
        books, drains = self.term.books, {each.instance: each for each in deeds.drains}

        async def change(tx: BurstTx) -> list[Happened]:
            now, locked = await tx.now(), await tx.lock_instances(drains)
            after = [
                books.ended_by(row, now=now, how=_ending(drains[row.id])) for row in locked.values()
            ]
            changed = [row for row in after if row != locked[row.id]]
            await tx.update_instances(changed)
            await tx.add_decisions(said)
            return [Happened(DRAIN, row, drains[row.id].why) for row in changed]

        return await self.term.write(change)

    async def _say(self, deeds: Deeds) -> None:
        """Write what else was decided."""
        others = [each for each in deeds.decisions if each.action not in {RENT, DRAIN}]
        if others:
            await self.term.write(lambda tx: tx.add_decisions(others), quietly=True)


def _ending(drain: Drain) -> Ending:
    return Ending(drain.cause, drain.why, stop_at=drain.stop_at, drain_by=drain.drain_by)


def paired(
    rents: Sequence[Rent], said: Sequence[BurstDecision]
) -> list[tuple[Rent, list[BurstDecision]]]:
    """Each rent with what was said of it: of each of its jobs, or once. Both are in one order."""
    left, found = deque(said), []
    for rent in rents:
        about = [left.popleft()] if left and not rent.jobs else []
        while left and left[0].job in rent.jobs:
            about.append(left.popleft())
        found.append((rent, about or [_of(rent)]))
    return found


def _of(rent: Rent) -> BurstDecision:
    return BurstDecision(
        0.0,
        RENT,
        rent.why,
        kind=rent.offer.kind,
        devices=rent.offer.nodes * rent.offer.devices,
        offer=rent.offer.key,
        job=rent.jobs[0] if rent.jobs else None,
        queue=rent.queue,
        terms=rent.terms,
    )
