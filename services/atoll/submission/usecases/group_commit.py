"""Commits concurrent calls together: while one transaction is under way the next one gathers.

Each item still has an outcome of its own. A batch that fails as a whole is tried again item by
item, so that nobody fails for what another brought.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from atoll.core.model.errors import Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

Commit = Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]]
"""Commits items in one transaction; by item its result, or why it alone was refused."""


class GroupCommit(Generic[Item, Result]):
    """Gathers items, and commits them one transaction after the other.

    Two at a time were measured: smaller batches cost more than the overlap gains.
    `weight` and `most` bound a batch; two items of the same `key` are never in one.
    """

    def __init__(
        self,
        commit: Commit[Item, Result],
        *,
        weight: Callable[[Item], int],
        key: Callable[[Item], Hashable],
        most: int,
    ) -> None:
        self._commit = commit
        self._weight = weight
        self._key = key
        self._most = most
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        """The item's result, once it is committed; raises what it alone was refused with."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        # One turn of the loop: calls that arrived together go together.
        await asyncio.sleep(0)
        while batch := self._take():
            try:
                await self._commit_all(batch)
            except asyncio.CancelledError:
                for _, future in batch:
                    future.cancel()
                raise

    def _take(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        passed: list[tuple[Item, asyncio.Future[Result]]] = []
        keys: set[Hashable] = set()
        room = self._most
        while self._waiting:
            item, future = self._waiting.popleft()
            if future.done():
                continue  # its caller has gone
            weight, key = self._weight(item), self._key(item)
            full = bool(batch) and weight > room
            if full or key in keys:
                passed.append((item, future))
                if full:
                    break
                continue
            keys.add(key)
            batch.append((item, future))
            room -= weight
        self._waiting.extendleft(reversed(passed))
        return batch

    async def _commit_all(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._commit([item for item, _ in batch])
        except Exception as error:
            if len(batch) == 1 or isinstance(error, Unavailable):
                results = [error] * len(batch)
            else:
                for one in batch:
                    await self._commit_all([one])
                return
        for (_, future), result in zip(batch, results, strict=True):
            _resolve(future, result)


def _resolve(future: asyncio.Future[Result], result: Result | Exception) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
