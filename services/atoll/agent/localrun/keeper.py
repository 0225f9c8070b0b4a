"""Keeps the runs of this machine: starts their wrappers, stops them, and finds them again."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any, Final

from atoll.agent.floor import Floor
from atoll.agent.localrun.cgroups import kill_group
from atoll.agent.localrun.environment import Place
from atoll.agent.localrun.folders import (
    TOMBSTONE,
    Folders,
    Held,
    Marker,
    claim,
    end_of,
    kill_rest,
    read_held,
    read_marker,
    sized,
    write_held,
    write_lost,
)
from atoll.agent.localrun.launch import Site, held_by, launch, prepare_resize
from atoll.agent.localrun.run import Run, broken
from atoll.agent.localrun.watch import Watch
from atoll.agent.sizes import changed_tasks, resized
from atoll.core.model.ids import AttemptId, attempt_name
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.ports.backend import LeaseOver, Refused, ResizeOrder, RunEvent, StartOrder, StopOrder
from atoll.ports.clock import Clock
from atoll.runtime import failpoints, logs

log = logs.logger(__name__)

SIZED_LOOK_S: Final = 0.1
FORCE_AFTER_S: Final = 10.0
"""Beyond a run's own grace; then its wrapper is taken for stuck."""


class Keeper:
    """The runs, until the end of each is known to all; `emit` is given their events."""

    def __init__(
        self,
        folders: Folders,
        site: Site,
        floor: Floor,
        *,
        clock: Clock,
        emit: Callable[[Iterable[RunEvent]], None],
    ) -> None:
        self._folders = folders
        self._site = site
        self._floor = floor
        self._clock = clock
        self._emit = emit
        self._runs: dict[AttemptId, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._unpruned = 0

    def wrappers(self) -> tuple[int, ...]:
        """Pids of the wrappers that live."""
        return tuple(run.watch.pid for run in self._runs.values() if run.watch is not None)

    def ports(self) -> frozenset[int]:
        """Ports that runs have been given."""
        return frozenset(
            port for run in self._runs.values() if not run.ended for port in run.held.ports
        )

    def known(self, attempt: AttemptId) -> bool:
        """Whether it runs, is about to, or has ended here."""
        return attempt in self._runs

    def running(self, attempt: AttemptId) -> bool:
        """Whether it may still write output."""
        run = self._runs.get(attempt)
        return run is not None and not run.ended

    async def adopt(self) -> tuple[RunEvent, ...]:
        """Find the runs of an earlier agent; the latest event of each."""
        events = []
        for attempt in tuple(self._folders.attempts()):
            folder = self._folders.of(attempt)
            if read_marker(folder) is not None or (folder / "exit").exists():
                events.append(await self._found(self._hold(attempt, read_held(folder))))
            else:
                # A wrapper may be just about to claim it.
                events.append(RunEvent(attempt, AttemptEvent.ACCEPTED))
        return tuple(events)

    async def start(self, order: StartOrder, place: Place) -> None:
        """Start an attempt that is not known, or find that it was; raises Refused, LeaseOver."""
        if self.known(order.attempt):
            return
        run = self._hold(order.attempt, held_by(order, place))
        failpoints.hit("local.before_launch")
        word, why = await self._launch(run, order, place)
        failpoints.hit("local.after_launch")
        if word == "started":
            self._emit((RunEvent(run.attempt, AttemptEvent.STARTED),))
        if word in ("started", "taken") or not await asyncio.to_thread(claim, run.folder):
            await self._find(run, told=word == "started")
            self._hand_on_stop(run)
        elif run.stop is not None:
            self._end(run)
            self._emit((RunEvent(run.attempt, AttemptEvent.STOPPED),))
        else:
            self._drop(run)
            raise Refused(broken(order, why))

    def stop(self, order: StopOrder) -> None:
        """Stop a run, or see to it that there never is one."""
        run = self._runs.get(order.attempt)
        if run is None:
            run = self._hold(order.attempt, Held())
            self._spawn(self._bury(run, order))
        elif not run.ended and run.stop is None:
            run.stop = order
            self._hand_on_stop(run)

    async def resize(self, order: ResizeOrder, place: Place) -> None:
        """Give a run other tasks, which are known to be free; RESIZED follows unless it ends."""
        run = self._runs.get(order.attempt)
        if run is None or not self.running(order.attempt) or run.watch is None:
            return
        kept, new = changed_tasks(run.held.tasks, order.start.tasks)
        self._occupy(run, (*run.held.tasks, *new))
        await asyncio.to_thread(prepare_resize, run.folder, order, place, site=self._site)
        await asyncio.to_thread(write_held, run.folder, run.held)
        self._signal(run, signal.SIGHUP)
        while self.running(order.attempt) and sized(run.folder) < order.generation:
            await self._clock.sleep(SIZED_LOOK_S)
        if self.running(order.attempt):
            self._occupy(run, (*kept, *new))
            await asyncio.to_thread(write_held, run.folder, run.held)
            self._emit((resized(order, run.held.tasks),))

    def tasks(self, attempt: AttemptId) -> tuple[TaskPlacement, ...]:
        """What a run holds of the machine."""
        run = self._runs.get(attempt)
        return () if run is None or run.ended else run.held.tasks

    async def refuse(self, attempt: AttemptId) -> None:
        """Nothing that an earlier agent began of it comes to life any more."""
        folder = self._folders.of(attempt)
        if folder.exists():
            await asyncio.to_thread(claim, folder)

    def forget(self, attempt: AttemptId, *, keep: int) -> None:
        """Put a run away whose end is known to all; the newest `keep` of those stay."""
        if self.running(attempt):
            return
        self._runs.pop(attempt, None)
        self._folders.put_away(attempt)
        self._unpruned += 1
        if self._unpruned == 1:
            self._spawn(self._prune(keep))

    async def _prune(self, keep: int) -> None:
        seen = 0
        while seen < self._unpruned:
            seen = self._unpruned
            await asyncio.to_thread(self._folders.prune, keep)
        self._unpruned = 0

    async def close(self) -> None:
        """Let go; runs live on."""
        for run in self._runs.values():
            self._unwatch(run)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _launch(self, run: Run, order: StartOrder, place: Place) -> tuple[str, str]:
        try:
            word = await asyncio.to_thread(launch, run.folder, order, place, site=self._site)
        except OSError as error:
            log.exception("cannot start", attempt_id=run.attempt)
            return "", str(error)
        if word == "lease" and run.stop is None:
            self._drop(run)
            raise LeaseOver
        return word, f"its wrapper did not start; see {run.folder / 'wrapper.log'}"

    async def _found(self, run: Run) -> RunEvent:
        """What the run's folder and its process say now; watches what is alive."""
        marker = await asyncio.to_thread(read_marker, run.folder)
        event = await asyncio.to_thread(end_of, run.folder, run.attempt)
        if event is not None:
            self._end(run)
            return event
        if marker == TOMBSTONE:
            self._end(run)
            return RunEvent(run.attempt, AttemptEvent.STOPPED)
        if marker is None or not marker.alive():
            return await self._conclude(run)
        self._watch(run, marker)
        return RunEvent(run.attempt, AttemptEvent.STARTED)

    def _watch(self, run: Run, marker: Marker) -> None:
        run.watch = Watch(marker, lambda: self._spawn(self._gone(run)))

    async def _gone(self, run: Run) -> None:
        run.watch = None
        self._emit((await self._conclude(run),))

    async def _conclude(self, run: Run) -> RunEvent:
        """The wrapper is gone: how its run ended."""
        event = await asyncio.to_thread(self._read_end, run)
        self._end(run)
        return event

    def _read_end(self, run: Run) -> RunEvent:
        event = end_of(run.folder, run.attempt)
        if event is None:
            kill_rest(run.folder)
            for task in run.held.tasks:
                for folder in self._site.cgroups.of(f"{attempt_name(run.attempt)}-{task.rank}"):
                    kill_group(folder)
            reason = "UNKNOWN" if run.stop is None else "STOPPED"
            write_lost(run.folder, at=self._clock.now(), reason=reason)
            event = end_of(run.folder, run.attempt)
        return event or RunEvent(run.attempt, AttemptEvent.FINISHED, reason=ReasonCode.EXIT_UNKNOWN)

    def _hand_on_stop(self, run: Run) -> None:
        if run.stop is None or run.watch is None or run.force is not None:
            return
        self._signal(run, signal.SIGTERM)
        loop = asyncio.get_running_loop()
        run.force = loop.call_later(run.held.grace_s + FORCE_AFTER_S, self._kill, run)

    def _signal(self, run: Run, number: int) -> None:
        if run.watch is not None:
            run.watch.send(number)

    def _kill(self, run: Run) -> None:
        if run.watch is not None:
            log.warning("the wrapper does not stop its run: killing both", attempt_id=run.attempt)
            run.watch.send(signal.SIGKILL)

    async def _bury(self, run: Run, order: StopOrder) -> None:
        if await asyncio.to_thread(claim, run.folder):
            self._end(run)
            self._emit((RunEvent(run.attempt, AttemptEvent.STOPPED),))
            return
        run.stop = order
        await self._find(run, told=True)
        self._hand_on_stop(run)

    async def _find(self, run: Run, *, told: bool) -> None:
        """Go on with a run that was started; `told`: nobody needs to hear that it was."""
        event = await self._found(run)
        if not told or event.event is not AttemptEvent.STARTED:
            self._emit((event,))

    def _hold(self, attempt: AttemptId, held: Held) -> Run:
        run = self._runs[attempt] = Run(attempt, self._folders.of(attempt), held)
        self._floor.occupy(attempt, held.tasks)
        return run

    def _occupy(self, run: Run, tasks: tuple[TaskPlacement, ...]) -> None:
        if not run.ended:
            self._floor.release(run.attempt, run.held.tasks)
            run.held = replace(run.held, tasks=tasks)
            self._floor.occupy(run.attempt, tasks)

    def _end(self, run: Run) -> None:
        if not run.ended:
            run.ended = True
            self._floor.release(run.attempt, run.held.tasks)
        self._unwatch(run)

    def _drop(self, run: Run) -> None:
        self._end(run)
        del self._runs[run.attempt]

    def _unwatch(self, run: Run) -> None:
        if run.force is not None:
            run.force.cancel()
        if run.watch is not None:
            run.watch.close()
            run.watch = None

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("keeping a run failed", exc_info=error)
