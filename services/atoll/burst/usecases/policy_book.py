"""What queues, and all together, may rent: read and changed by people."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from atoll.burst.usecases.books import Books
from atoll.burst.usecases.words import whose
from atoll.core.model.burst import Budget, BurstPolicy
from atoll.core.model.errors import Aborted, ErrorCode, FieldViolation, InvalidInput, NotFound
from atoll.core.model.ids import QueueName
from atoll.core.model.validate_faults import Faults
from atoll.ports.store.burst import BurstTx

MOST_MONEY: Final = 10**15
"""Micro-dollars: a billion dollars."""
MOST_NAMES: Final = 100
PATHS: Final = (
    "allowed", "budget.per_hour", "budget.per_month", "regions", "providers", "most_price",
    "markets", "hour_of_delay", "killed",
)  # fmt: skip
WHOLE: Final = {"budget": ("budget.per_hour", "budget.per_month")}
"""Paths that stand for all below."""


class PolicyBook:
    """The policies."""

    def __init__(self, books: Books) -> None:
        self._books = books

    async def get(self, queue: QueueName | None) -> BurstPolicy:
        """That of a queue, or of all together; raises NotFound."""
        found = {each.queue: each for each in await self._books.store.policies()}
        if queue in found:
            return found[queue]
        if queue is None:
            return BurstPolicy(None, generation=0)
        raise NotFound(
            f"queue {queue} has no policy of its own; what those above it, and that of all "
            "together, say holds for it",
            code=ErrorCode.POLICY_NOT_FOUND,
            metadata={"queue": queue},
        )

    async def all(self) -> list[BurstPolicy]:
        """That of all together first, then by queue."""
        return await self._books.store.policies()

    async def set(self, given: BurstPolicy, paths: Sequence[str]) -> BurstPolicy:
        """Change what the paths name, or all without any; a new policy begins with nothing allowed.

        `given.generation` is the etag, 0 for none. Raises InvalidInput, and Aborted when
        somebody else changed it since.
        """
        if faults := _faults(given, paths):
            raise InvalidInput(tuple(faults))

        async def change(tx: BurstTx) -> BurstPolicy:
            standing = await tx.lock_policy(given.queue) or BurstPolicy(given.queue, generation=0)
            if given.generation and given.generation != standing.generation:
                raise _changed(given, standing)
            made = replace(_merged(standing, given, paths), generation=standing.generation + 1)
            await tx.put_policy(made)
            return made

        return await self._books.write(change)


def _merged(standing: BurstPolicy, given: BurstPolicy, paths: Sequence[str]) -> BurstPolicy:
    values: dict[str, Any] = {}
    budget: dict[str, int | None] = {}
    for path in _single(paths):
        field, _, inner = path.partition(".")
        if inner:
            budget[inner] = getattr(given.budget, inner)
        else:
            values[field] = getattr(given, field)
    bounds = {
        "per_hour": standing.budget.per_hour,
        "per_month": standing.budget.per_month,
        **budget,
    }
    return replace(standing, budget=Budget(**bounds), **values)


def _single(paths: Sequence[str]) -> list[str]:
    return [each for path in paths or PATHS for each in WHOLE.get(path, (path,))]


def _faults(given: BurstPolicy, paths: Sequence[str]) -> list[FieldViolation]:
    faults = Faults()
    for i, path in enumerate(paths):
        faults.one_of(f"update_mask.paths[{i}]", path, (*PATHS, *WHOLE))
    for name, value in (
        ("budget.per_hour", given.budget.per_hour or 0),
        ("budget.per_month", given.budget.per_month or 0),
        ("most_price", given.most_price),
        ("hour_of_delay", given.hour_of_delay),
    ):
        faults.number(f"policy.{name}", value, least=0, most=MOST_MONEY, unit="micro-dollars")
    _check_names(faults, "policy.regions", given.regions)
    _check_names(faults, "policy.providers", given.providers)
    if given.killed and given.queue is not None:
        faults.add("policy.killed", "is for all together only; for a queue say allowed: false")
    return faults.found


def _check_names(faults: Faults, field: str, names: Collection[str]) -> None:
    faults.length(field, len(names), least=0, most=MOST_NAMES, of="names")
    for i, name in enumerate(names):
        if not name or len(name) > MOST_NAMES or not name.isprintable():
            faults.add(f"{field}[{i}]", "is no name")


def _changed(given: BurstPolicy, standing: BurstPolicy) -> Aborted:
    return Aborted(
        f"the policy of {whose(given.queue)} has changed: its etag is {standing.generation}, "
        f"not {given.generation}",
        code=ErrorCode.ETAG_MISMATCH,
        metadata={"queue": given.queue or "", "etag": str(standing.generation)},
    )
