"""An event loop whose time is virtual: it passes only when nothing is left to do, and at once then.

Two runs of a program on it are the same, step by step. What would differ does not exist here:
threads (their work is done at once, in place), sockets, and the hashes by which asyncio orders
tasks and futures in its sets, which here count up.
"""

import asyncio
import gc
import selectors
from collections.abc import Callable, Coroutine, Generator
from itertools import count
from typing import Any, Final, TypeVar

T = TypeVar("T")

COLLECT_EVERY: Final = 200_000
"""Turns of the loop. Left to itself, the collector would run at moments that nothing determines."""


class Deadlock(Exception):
    """Nothing is left to do and nobody waits for a time: nothing can ever happen again."""


class CountedFuture(asyncio.Future[T]):
    """A future that is in the same place of a set in every run."""

    def __init__(self, number: int, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._number = number

    def __hash__(self) -> int:
        return self._number


class CountedTask(asyncio.Task[T]):
    """A task that is in the same place of a set in every run."""

    def __init__(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        number: int,
        *,
        loop: asyncio.AbstractEventLoop,
        **given: Any,
    ) -> None:
        self._number = number  # asyncio puts the task into a set before it is whole
        super().__init__(coro, loop=loop, **given)

    def __hash__(self) -> int:
        return self._number


class _Jump(selectors.SelectSelector):
    """Waits for nothing: it moves the time on by what it was to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turns += 1
        if self.turns % COLLECT_EVERY == 0:
            gc.collect()
        if timeout is None:
            raise Deadlock
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its `time()` begins at 0."""

    def __init__(self) -> None:
        self._jump = _Jump()
        self._numbers = count(1)
        super().__init__(self._jump)
        self.set_task_factory(_make_task)

    @property
    def turns(self) -> int:
        """How often the loop has looked for something to do."""
        return self._jump.turns

    def time(self) -> float:
        """Virtual seconds."""
        return self._jump.now

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return CountedFuture(next(self._numbers), loop=self)

    def next_number(self) -> int:
        """What the next task or future hashes to."""
        return next(self._numbers)

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Call `func` now; the result is there at once."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        """There is only one thread."""
        return self.call_soon(callback, *args, context=context)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on a virtual loop of its own, with the garbage collector in step with it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(main)
    finally:
        if collects:
            gc.enable()


def _make_task(
    loop: asyncio.AbstractEventLoop,
    coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
    **given: Any,
) -> asyncio.Task[T]:
    assert isinstance(loop, VirtualLoop)
    return CountedTask(coro, loop.next_number(), loop=loop, **given)
