"""Rents and ends by hand, within the same limits as the broker; the leader carries it out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from atoll.burst.usecases.books import Books, Ending
from atoll.burst.usecases.words import short_in_words
from atoll.core.engine.burst.broker.ground import Rent
from atoll.core.engine.choice.worth import dollars
from atoll.core.model.burst import ENDED, EndCause, Instance, InstanceId, Offer
from atoll.core.model.burst_rules import Policies, refusal
from atoll.core.model.burst_wants import BurstDecision
from atoll.core.model.errors import (
    AlreadyExists,
    DomainError,
    ErrorCode,
    Exhausted,
    FailedPrecondition,
    FieldViolation,
    InvalidInput,
    NotFound,
)
from atoll.core.model.ids import QueueName
from atoll.ports.store.burst import BudgetShort, BurstTx
from atoll.ports.store.common import UnknownOutcome

OUTCOME_TRIES: Final = 3
PER_HOUR: Final = "per_hour"
LONGEST_KEEP_S: Final = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for."""

    count: int
    """Instances, or devices when a kind is given."""
    offer: str = ""
    kind: str = ""
    queue: QueueName | None = None
    keep_s: float = 0.0
    key: str = ""
    body_hash: bytes = b""
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    """So many instances of one offer."""

    rent: Rent
    count: int


class ByHand:
    """Requests and releases of people."""

    def __init__(self, books: Books) -> None:
        self._books = books

    async def request(self, asked: Request, *, principal: str) -> list[Instance]:
        """All of it within policy and budget, or nothing; once per key."""
        # Always with a key: it tells whether a commit whose reply was lost has happened.
        key = asked.key or self._books.ids.uuid()
        ids = await self._asked(asked, key=key, principal=principal)
        rows = await self._books.store.instances(ids)
        return [rows[number] for number in sorted(rows)]

    async def release(self, ids: Sequence[InstanceId], *, every: bool, now: bool) -> list[Instance]:
        """Drain and end instances; those that are ended already stay as they are."""
        if bool(ids) == every:
            raise _invalid("ids", "give the numbers of instances, or `all`")
        wanted = list(ids) or [row.id for row in await self._books.store.live_instances()]

        async def change(tx: BurstTx) -> list[Instance]:
            at, locked = await tx.now(), await tx.lock_instances(wanted)
            if missing := [str(number) for number in ids if number not in locked]:
                raise _no_such_instance(missing)
            how = self._ending(at, soon=now)
            live = [row for row in locked.values() if row.state not in ENDED]
            after = {row.id: self._books.ended_by(row, now=at, how=how) for row in live}
            changed = [row for row in after.values() if row != locked[row.id]]
            await tx.update_instances(changed)
            await tx.add_decisions([
                BurstDecision(
                    at, "drain", f"released instance {row.id} by hand", instances=(row.id,)
                )
                for row in changed
            ])
            return [after.get(row.id, row) for row in locked.values()]

        return await self._books.write(change)

    def _ending(self, at: float, *, soon: bool) -> Ending:
        life = self._books.terms.life
        stop_at = at if soon else at + life.drain_s
        return Ending(EndCause.BY_HAND, "released by hand", stop_at, stop_at + life.grace_s)

    async def _asked(self, asked: Request, *, key: str, principal: str) -> list[InstanceId]:
        plan = await self._planned(asked, principal)
        for last in (False,) * (OUTCOME_TRIES - 1) + (True,):
            try:
                return await self._books.write(lambda tx: self._once(tx, asked, key, plan=plan))
            except UnknownOutcome:
                if last:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _planned(self, asked: Request, principal: str) -> _Plan | DomainError:
        """Before any transaction: whoever holds one must not wait for another connection."""
        try:
            offer, count = await self._chosen(asked)
        except InvalidInput:
            raise
        except DomainError as refused:
            # An equal request before may have had what cannot be had any more.
            return refused
        return _Plan(self._rent(asked, offer, principal), count)

    async def _once(
        self, tx: BurstTx, asked: Request, key: str, *, plan: _Plan | DomainError
    ) -> list[InstanceId]:
        known = await tx.add_request(key, asked.body_hash)
        if known is not None:
            body_hash, ids = known
            if body_hash != asked.body_hash:
                raise _reused(key)
            return ids
        if isinstance(plan, DomainError):
            raise plan
        now, rent, offer = await tx.now(), plan.rent, plan.rent.offer
        short = await tx.take_budget(
            rent.queue, rate=offer.price * plan.count, ahead=rent.ahead * plan.count
        )
        if short is not None:
            raise _beyond(short, offer, plan.count)
        keep_until = now + max(offer.lead_s + asked.keep_s, 1.0)
        fresh = [self._books.fresh(rent, now=now, keep_until=keep_until) for _ in range(plan.count)]
        ids = [row.id for row in await tx.add_instances(fresh)]
        await tx.set_request(key, ids)
        await tx.add_decisions([_decision(rent, ids, now=now)])
        return ids

    def _rent(self, asked: Request, offer: Offer, principal: str) -> Rent:
        held_s = offer.lead_s + asked.keep_s + self._books.terms.options.end_s
        told = f": {asked.why}" if asked.why else ""
        why = f"rented {offer.key} at {dollars(offer.price)}/h by hand for {principal}{told}"
        return Rent(offer, asked.queue, (), round(offer.price * held_s / 3600), why)

    async def _chosen(self, asked: Request) -> tuple[Offer, int]:
        """The offer, and how many instances of it; raises InvalidInput, NotFound, and refusals."""
        _check(asked)
        store = self._books.store
        policies = {each.queue: each for each in await store.policies()}
        offers = await store.offers()
        if asked.offer:
            offer = _named(offers, asked.offer)
            if why := refusal(policies, asked.queue, offer):
                raise _refused(why)
            return offer, asked.count
        fit = [each for each in offers if each.kind == asked.kind and each.devices]
        if not fit:
            kinds = ", ".join(sorted({each.kind for each in offers if each.kind})) or "none"
            raise _invalid("kind", f"nobody offers {asked.kind!r}; there are: {kinds}")
        offer = _cheapest(fit, policies, asked)
        return offer, -(-asked.count // offer.units)


def _check(asked: Request) -> None:
    if bool(asked.offer) == bool(asked.kind):
        raise _invalid("offer", "give either an offer or a device kind")
    if not 0 <= asked.keep_s <= LONGEST_KEEP_S:
        raise _invalid("keep_s", "is not in 0 .. a year")


def _named(offers: Sequence[Offer], key: str) -> Offer:
    for offer in offers:
        if offer.key == key:
            return offer
    raise NotFound(
        f"there is no offer {key[:128]!r} now",
        code=ErrorCode.OFFER_NOT_FOUND,
        metadata={"offer": key[:128]},
    )


def _cheapest(fit: Sequence[Offer], policies: Policies, asked: Request) -> Offer:
    refused = {each.key: refusal(policies, asked.queue, each) for each in fit}
    allowed = [each for each in fit if not refused[each.key]]
    if not allowed:
        raise _refused(refused[min(fit, key=_price).key])
    # What the last try did not find may be there again, but only if nothing else is.
    return min(allowed, key=lambda each: (not each.available, *_price(each)))


def _price(offer: Offer) -> tuple[float, str]:
    return (offer.price / offer.units, offer.key)


def _decision(rent: Rent, ids: Sequence[InstanceId], *, now: float) -> BurstDecision:
    offer = rent.offer
    return BurstDecision(
        now,
        "rent",
        rent.why,
        kind=offer.kind,
        devices=offer.nodes * offer.devices * len(ids),
        offer=offer.key,
        queue=rent.queue,
        instances=tuple(ids),
    )


def _beyond(short: BudgetShort, offer: Offer, count: int) -> Exhausted:
    fit = short.left // max(1, offer.price)
    told = f" ({fit} of the {count} would fit)" if count > 1 and short.bound == PER_HOUR else ""
    return Exhausted(
        f"{offer.key} cannot be rented: {short_in_words(short)}{told}",
        code=ErrorCode.BUDGET_SHORT,
        metadata={
            "queue": short.queue or "",
            "bound": short.bound,
            "limit": str(short.limit),
            "left": str(short.left),
        },
    )


def _refused(why: str) -> FailedPrecondition:
    return FailedPrecondition(why, code=ErrorCode.BURST_REFUSED)


def _reused(key: str) -> AlreadyExists:
    return AlreadyExists(
        f"request_id {key[:64]!r} was used for another request",
        code=ErrorCode.REQUEST_REUSED,
        metadata={"request_id": key[:64]},
    )


def _no_such_instance(missing: Sequence[str]) -> NotFound:
    return NotFound(
        f"there is no instance {', '.join(missing[:10])}",
        code=ErrorCode.INSTANCE_NOT_FOUND,
        metadata={"instance": missing[0]},
    )


def _invalid(field: str, message: str) -> InvalidInput:
    return InvalidInput((FieldViolation(field, message),))
