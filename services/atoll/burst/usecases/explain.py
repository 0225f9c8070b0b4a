"""Says why something was rented, or not: about a job, an instance, or the last decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from atoll.burst.usecases.books import Books
from atoll.burst.usecases.status import KEPT_AS, status_from_bytes
from atoll.core.engine.burst.broker.candidates import rented
from atoll.core.engine.choice.worth import dollars, in_words
from atoll.core.model.burst import ENDED, Instance, InstanceId, InstanceState
from atoll.core.model.burst_wants import BurstDecision, Candidate, Want
from atoll.core.model.errors import ErrorCode, NotFound
from atoll.core.model.ids import JobId

DEFAULT_MOST: Final = 20
MOST: Final = 1_000
SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Explanation:
    """A sentence, and the decisions behind it, the latest first."""

    summary: str
    decisions: tuple[BurstDecision, ...]


class Explainer:
    """Answers on any replica, from what is written."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._store = books.store

    async def job(self, number: JobId) -> Explanation:
        """The latest decision about a job, and what it could have now."""
        decisions = await self._store.decisions(job=number, limit=DEFAULT_MOST)
        want = next((each for each in await self._store.wants() if each.job == number), None)
        now = await (self._now(want) if want else self._else(number, decisions))
        told = [each for each in (_latest(decisions), now) if each]
        return Explanation(" ".join(told), tuple(decisions))

    async def instance(self, number: InstanceId) -> Explanation:
        """Why it was rented, and why it ended or is to end."""
        row = (await self._store.instances([number])).get(number)
        if row is None:
            raise NotFound(
                f"there is no instance {number}",
                code=ErrorCode.INSTANCE_NOT_FOUND,
                metadata={"instance": str(number)},
            )
        decisions = await self._store.decisions(instance=number, limit=DEFAULT_MOST)
        told = [_sentence(f"instance {number}: {row.why or 'rented'}"), _end(row)]
        if row.state not in ENDED:
            told += await self._away(row.offer.provider)
        return Explanation(" ".join(told), tuple(decisions))

    async def last(self, most: int) -> Explanation:
        """The last decisions."""
        decisions = await self._store.decisions(limit=min(most or DEFAULT_MOST, MOST))
        return Explanation(_latest(decisions) or "Nothing has been decided yet.", tuple(decisions))

    async def _else(self, number: JobId, decisions: Sequence[BurstDecision]) -> str:
        """Of a job that does not want to rent now: what was rented for it, or why not."""
        ids = decisions[0].instances if decisions else ()
        rows = await self._store.instances(ids)
        if rows:
            return _sentence(", ".join(f"instance {n} is {row.state}" for n, row in rows.items()))
        return (
            f"Job {number} does not wait for rented capacity now: it is not queued, it or its "
            "queue does not allow renting, or nothing on offer could hold all of it."
        )

    async def _away(self, provider: str) -> list[str]:
        """What the leader says of a provider that does not answer."""
        kept = status_from_bytes(await self._store.memory(KEPT_AS)).providers
        return [
            _sentence(f"provider {provider} does not answer: {each.message}")
            for each in kept
            if each.name == provider and not each.reachable
        ]

    async def _now(self, want: Want) -> str:
        policies = {each.queue: each for each in await self._store.policies()}
        now = self._books.clock.now()
        found = rented(want, await self._store.offers(), policies, now=now)
        return f"{_local(want, now)} {_candidates(want, found)}"


def _latest(decisions: Sequence[BurstDecision]) -> str:
    return _sentence(decisions[0].why) if decisions else ""


def _local(want: Want, now: float) -> str:
    if not want.local_p50_at:
        return "When it can start without renting, nobody can tell."
    return f"Without renting it starts in {in_words(max(0.0, want.local_p50_at - now))}."


def _candidates(want: Want, found: Sequence[Candidate]) -> str:
    if not want.asks:
        return "It does not fit on what can be rented, so nothing is rented for it."
    if not found:
        return "Nobody offers what it fits on."
    return _sentence("rented it could run " + "; ".join(each.why for each in found[:SHOWN]))


def _end(row: Instance) -> str:
    spent = f"it cost {dollars(row.spent)} so far"
    if row.state in ENDED:
        lasted = in_words(max(0.0, row.ended_at - (row.created_at or row.ended_at)))
        told = f"it is {row.state.value} ({row.cause.value}): {row.message}"
        return _sentence(f"{told}; it ran for {lasted}, and cost {dollars(row.spent)}")
    if row.state in {InstanceState.DRAINING, InstanceState.TERMINATING}:
        return _sentence(f"it is {row.state.value} ({row.cause.value}): {row.message}; {spent}")
    return _sentence(f"it is {row.state.value}; {spent}")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
