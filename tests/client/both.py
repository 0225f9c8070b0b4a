"""Runs one test over both clients: what one returns the other awaits."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

from atoll.client.aio import AsyncClient
from atoll.client.config import ClientConfig
from atoll.client.sync import Client


class Waiting:
    """The client for programs that wait."""

    def __init__(self, config: ClientConfig) -> None:
        self.client: Any = Client(config=config)

    def do(self, result: Any) -> Any:
        """The result of a verb."""
        return result

    def each(self, results: Any) -> Iterator[Any]:
        """The results of a verb with many."""
        return iter(results)

    def close(self) -> None:
        self.client.close()


class Looping:
    """The client for programs on an event loop, one step of which is run at a time."""

    def __init__(self, config: ClientConfig) -> None:
        self._runner = asyncio.Runner()
        self._begun: list[Generator[Any]] = []
        self.client: Any = self._runner.run(self._made(config))

    def do(self, result: Any) -> Any:
        return self._runner.run(self._awaited(result)) if inspect.isawaitable(result) else result

    def each(self, results: AsyncIterator[Any]) -> Iterator[Any]:
        self._begun.append(begun := self._steps(results))
        return begun

    def close(self) -> None:
        for each in self._begun:
            each.close()
        self._runner.run(self.client.close())
        self._runner.close()

    def _steps(self, results: AsyncIterator[Any]) -> Generator[Any]:
        try:
            while True:
                try:
                    yield self._runner.run(self._awaited(anext(results)))
                except StopAsyncIteration:
                    return
        finally:
            if inspect.isasyncgen(results):
                self._runner.run(self._awaited(results.aclose()))

    async def _made(self, config: ClientConfig) -> AsyncClient:
        return AsyncClient(config=config)

    async def _awaited(self, work: Any) -> Any:
        return await work


Both = Waiting | Looping
