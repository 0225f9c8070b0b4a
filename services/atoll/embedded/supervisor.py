"""Keeps parts alive: starts them stage by stage, restarts those that die, ends them in order."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from atoll.embedded.parts import Part, PartFailed
from atoll.embedded.state import Board, PartState, PartView
from atoll.ports.clock import Clock, Ids
from atoll.runtime.loops import Backoff
from atoll.runtime.loops import Supervisor as Loops

LOOK_EVERY_S: Final = 0.2
PROBE_EVERY_LOOKS: Final = 15
FIRST_TRIES: Final = 3
"""Starts of a part before `up` gives up; later on it is tried for ever."""
BACKOFF: Final = Backoff(first_s=0.5, most_s=30.0, reset_s=60.0)


class Supervisor:
    """Stages of parts; a later stage needs the earlier ones."""

    def __init__(self, board: Board, *, clock: Clock, ids: Ids) -> None:
        self._board = board
        self._clock = clock
        self._ids = ids
        self._stages: list[list[Part]] = []
        self._keepers = Loops(clock, ids)
        self._restarted: Callable[[], None] = lambda: None

    async def start(self, parts: Sequence[Part]) -> None:
        """Start one more stage, all parts at once, and keep it alive until `end`.

        Raises PartFailed when a part does not come up.
        """
        self._stages.append(list(parts))
        self._show(parts)
        await _together([self._bring_up(part) for part in parts])
        for part in parts:
            _ = self._keepers.start(f"keep {part.name}", partial(self._keep, part))

    def after_restart(self, tell: Callable[[], None]) -> None:
        """Call this whenever a part has been started again."""
        self._restarted = tell

    async def end(self) -> None:
        """End all stages, the last first; a part that hangs does not keep the others."""
        await self._keepers.close()
        while self._stages:
            parts = self._stages.pop()
            await asyncio.gather(*(self._end_one(part) for part in parts))

    def _show(self, parts: Sequence[Part]) -> None:
        known = {view.name for view in self._board.report.parts}
        self._board.add(*(PartView(name=part.name) for part in parts if part.name not in known))

    async def _bring_up(self, part: Part) -> None:
        for tries_left in reversed(range(FIRST_TRIES)):
            try:
                await self._start_one(part)
                return
            except PartFailed:
                if not tries_left:
                    raise
                await self._clock.sleep(BACKOFF.first_s)

    async def _start_one(self, part: Part) -> None:
        self._board.part(part.name, state=PartState.STARTING, log=str(part.log), detail="")
        try:
            await part.start()
        except PartFailed as failure:
            self._board.part(part.name, state=PartState.BACKOFF, pid=None, detail=str(failure))
            raise
        self._board.part(
            part.name,
            state=PartState.HEALTHY,
            pid=part.pid,
            address=part.address,
            metrics=part.metrics,
        )

    async def _keep(self, part: Part) -> None:
        failures = 0
        while True:
            since = self._clock.monotonic()
            await self._watch(part)
            steady = self._clock.monotonic() - since >= BACKOFF.reset_s
            failures = 1 if steady else failures + 1
            self._show_death(part)
            await self._clock.sleep(BACKOFF.wait_s(failures, self._ids.jitter()))
            with contextlib.suppress(PartFailed):  # the board has it; the next try waits longer
                await self._start_one(part)
                self._restarted()

    async def _watch(self, part: Part) -> None:
        """Return when the part has died; show meanwhile whether it is ready."""
        looks = 0
        while part.alive():
            looks += 1
            if looks % PROBE_EVERY_LOOKS == 0:
                self._show_health(part, ready=await part.ready())
            await self._clock.sleep(LOOK_EVERY_S)

    def _show_death(self, part: Part) -> None:
        """Count it; why its last start failed is kept, if that is what it was."""
        view = self._board.view(part.name)
        self._board.part(
            part.name,
            state=PartState.BACKOFF,
            pid=None,
            restarts=view.restarts + 1,
            detail=view.detail or "died",
        )

    def _show_health(self, part: Part, *, ready: bool) -> None:
        if ready:
            self._board.part(part.name, state=PartState.HEALTHY, pid=part.pid, detail="")
        elif part.alive():
            self._board.part(part.name, state=PartState.UNREADY, detail="does not answer")

    async def _end_one(self, part: Part) -> None:
        self._board.part(part.name, state=PartState.ENDING, detail="")
        await part.end()
        self._board.part(part.name, state=PartState.ENDED, pid=None, detail="")


async def _together(jobs: Sequence[Awaitable[None]]) -> None:
    """Wait for all; the first error ends the others and is raised."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
