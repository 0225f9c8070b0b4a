"""Lets simulated runs begin, go on and end: one heap of times for all of them.

Times are those of the cluster: wall time when the process began, and steady from
then on. An end is entered in the ledger with the time at which it was due, not
at which somebody looked: a frozen process finds the truth when it wakes up.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any, Final

from atoll.agent.floor import Floor
from atoll.agent.simcluster.ledger import Ledger
from atoll.agent.simcluster.progress import ProgressBook
from atoll.agent.simcluster.runs import (
    Run,
    from_entry,
    replay_resize,
    reshape,
    resize_entry,
    to_entry,
)
from atoll.core.model.ids import AttemptId, job_of
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.ports.backend import RunEvent
from atoll.ports.clock import Clock
from atoll.runtime import failpoints

TICK_S: Final = 0.02
"""Ends that are due within a tick are written together."""
FOUND_ENDED: Final = 50_000
"""Ended runs that are looked at when the ledger is read; nobody waits for older ones."""
KEPT_ENDED: Final = 5_000
"""Runs whose end is known to all that can still tell their output."""

NATURAL: Final = frozenset({"FINISHED", "TIME_LIMIT"})
STOPPED_BY: Final[Mapping[str, ReasonCode | None]] = {
    "STOPPED": None,
    "GUARD": ReasonCode.STOPPED_BY_GUARD,
}


class Engine:
    """The runs of one cluster; `emit` is given events whose ledger entries are durable."""

    def __init__(
        self,
        clock: Clock,
        ledger: Ledger,
        floor: Floor,
        *,
        emit: Callable[[Iterable[RunEvent]], None],
        book: ProgressBook | None = None,
    ) -> None:
        self.book = book or ProgressBook()
        self.live: dict[AttemptId, Run] = {}
        self.ended: OrderedDict[AttemptId, Run] = OrderedDict()
        """Until their end is known to all."""
        self.known: OrderedDict[AttemptId, Run] = OrderedDict()
        self._clock = clock
        self._ledger = ledger
        self._floor = floor
        self._emit = emit
        self._offset = clock.now() - clock.monotonic()
        self._heap: list[tuple[float, int, str]] = []
        self._earlier = asyncio.Event()
        self._guarded: set[AttemptId] = set()
        self._lease_until = 0.0
        self._writing: set[asyncio.Task[None]] = set()

    def now(self) -> float:
        """Time of the cluster."""
        return self._clock.monotonic() + self._offset

    @property
    def leased_until(self) -> float:
        """Time of the cluster to which guarded runs may go on."""
        return self._lease_until

    @property
    def leased(self) -> bool:
        """Whether guarded runs may go on."""
        return self.now() < self._lease_until

    async def adopt(self) -> tuple[RunEvent, ...]:
        """Go on with what the ledger has; the latest event of each run in it."""
        for entry in self._ledger.entries():
            self._replay(entry)
        self._lease_until = self._ledger.lease_until()
        ends = self._due(self.now())
        ends += [
            self._end(run, "UNWOUND", self.now()) for run in [*self.live.values()] if run.partial
        ]
        await self._ledger.append(*(entry for entry, _ in ends))
        alive = [
            RunEvent(run.attempt, AttemptEvent.STARTED, run.began) for run in self.live.values()
        ]
        return (*alive, *map(event_of, self.ended.values()))

    async def begin(self, run: Run) -> None:
        """Start a run; returns when that is durable, and has emitted STARTED."""
        self._hold(run)
        await self._ledger.append(to_entry(run))
        failpoints.hit("sim.started")
        if not run.partial:
            self._emit((RunEvent(run.attempt, AttemptEvent.STARTED, run.began),))

    def stop(self, run: Run, *, within_s: float) -> None:
        """End a run after `within_s` real seconds, unless it ends by itself before."""
        if not run.stopping:
            run.stopping = True
            self._push(self.now() + within_s, run.attempt, "STOPPED")

    def find(self, attempt: AttemptId) -> Run | None:
        """A run that is live, or has ended not too long ago."""
        return self.live.get(attempt) or self.ended.get(attempt) or self.known.get(attempt)

    async def resize(self, run: Run, tasks: tuple[TaskPlacement, ...], *, speed: float) -> None:
        """Let a run go on with other tasks; returns when that is durable."""
        at = self.now()
        self._floor.release(run.attempt, run.tasks)
        reshape(run, tasks, at=at, speed=speed)
        self._floor.occupy(run.attempt, run.tasks)
        self._push_end(run)
        await self._ledger.append(resize_entry(run, at))

    def forget(self, attempt: AttemptId) -> None:
        """The end of a run is known to all."""
        if (run := self.ended.pop(attempt, None)) is not None:
            self.known[attempt] = run
            if len(self.known) > KEPT_ENDED:
                self.known.popitem(last=False)

    async def unwind(self, run: Run) -> None:
        """End the part of a gang that was bound; emits nothing."""
        if run.attempt in self.live:
            entry, _ = self._end(run, "UNWOUND", self.now())
            await self._ledger.append(entry)

    def kill(self, attempts: Iterable[AttemptId]) -> None:
        """Nodes of these runs died: of one run perhaps several."""
        now = self.now()
        runs = [self.live[a] for a in dict.fromkeys(attempts) if a in self.live]
        self._write([self._end(run, "NODE_DIED", now) for run in runs if not run.partial])

    def renew_lease(self, valid_until: float) -> None:
        """Let guarded runs go on until then (monotonic); those that are too late for it end."""
        self._write(self._due(self.now()))
        self._lease_until = max(self._lease_until, valid_until + self._offset)
        self._ledger.write_lease(self._lease_until)

    async def run(self) -> None:
        """End what is due, for ever."""
        while True:
            self._write(self._due(self.now()))
            await self._clock.sleep(TICK_S)
            wait_s = self._next() - self.now()
            if wait_s > 0:
                await self._sleep(wait_s)

    async def _sleep(self, wait_s: float) -> None:
        self._earlier.clear()
        try:
            async with asyncio.timeout(wait_s):
                await self._earlier.wait()
        except TimeoutError:
            pass

    def _next(self) -> float:
        first = self._heap[0][0] if self._heap else self.now() + 60.0
        return min(first, self._lease_until) if self._guarded else first

    def _push(self, at: float, attempt: AttemptId, how: str) -> None:
        if not self._heap or at < self._heap[0][0]:
            self._earlier.set()
        heappush(self._heap, (at, attempt, how))

    def _hold(self, run: Run) -> None:
        self.live[run.attempt] = run
        self._floor.occupy(run.attempt, run.tasks)
        if run.script.guarded:
            self._guarded.add(run.attempt)
            self._earlier.set()
        if not run.partial:
            self._push_end(run)

    def _push_end(self, run: Run) -> None:
        self._push(run.ends, run.attempt, "TIME_LIMIT" if run.script.over_time else "FINISHED")

    def _due(self, now: float) -> list[tuple[dict[str, Any], Run]]:
        """End all whose time has come, in the order of their times."""
        if not self._guarded or self._lease_until > now:
            return self._pop(now)
        ends = self._pop(self._lease_until)
        at = self._lease_until
        ends += [self._end(self.live[attempt], "GUARD", at) for attempt in sorted(self._guarded)]
        return ends + self._pop(now)

    def _pop(self, until: float) -> list[tuple[dict[str, Any], Run]]:
        ends = []
        while self._heap and self._heap[0][0] <= until:
            at, attempt, how = heappop(self._heap)
            run = self.live.get(AttemptId(attempt))
            # A change of size moved its natural end.
            moved = run is not None and how in NATURAL and at != run.ends
            if run is not None and not moved:
                ends.append(self._end(run, how, at))
        return ends

    def _end(self, run: Run, how: str, at: float) -> tuple[dict[str, Any], Run]:
        run.ended, run.how = max(at, run.began), how
        run.exit_code = run.script.exit_code if how == "FINISHED" else None
        self._let_go(run)
        entry = {
            "t": "stop",
            "attempt": run.attempt,
            "at": run.ended,
            "how": how,
            "exit": run.exit_code,
        }
        return entry, run

    def _let_go(self, run: Run) -> None:
        del self.live[run.attempt]
        self._guarded.discard(run.attempt)
        self._floor.release(run.attempt, run.tasks)
        self.ended[run.attempt] = run
        self._note(run)

    def _note(self, run: Run) -> None:
        """What a checkpoint saved is there for the job's next run; without one, nothing is."""
        if run.partial:
            return
        if run.how == "FINISHED":
            self.book.forget(job_of(run.attempt))
        elif run.script.saving.interval_s > 0:
            self.book.note(job_of(run.attempt), run.progress)

    def _write(self, ends: list[tuple[dict[str, Any], Run]]) -> None:
        if ends:
            task = asyncio.create_task(self._announce(ends))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _announce(self, ends: list[tuple[dict[str, Any], Run]]) -> None:
        await self._ledger.append(*(entry for entry, _ in ends))
        self._emit(event_of(run) for _, run in ends)

    def _replay(self, entry: Mapping[str, Any]) -> None:
        if entry["t"] == "start":
            self._hold(from_entry(entry))
        elif entry["t"] == "resize" and (run := self.live.get(entry["attempt"])) is not None:
            self._floor.release(run.attempt, run.tasks)
            replay_resize(run, entry)
            self._floor.occupy(run.attempt, run.tasks)
            self._push_end(run)
        elif entry["t"] == "stop" and (run := self.live.get(entry["attempt"])) is not None:
            run.ended, run.how, run.exit_code = entry["at"], entry["how"], entry["exit"]
            self._let_go(run)
            if len(self.ended) > FOUND_ENDED:
                self.ended.popitem(last=False)


def event_of(run: Run) -> RunEvent:
    """The terminal event of an ended run."""
    attempt, at, how = run.attempt, run.ended, run.how
    match how:
        case "FINISHED":
            return RunEvent(attempt, AttemptEvent.FINISHED, at, exit_code=run.exit_code)
        case "TIME_LIMIT":
            message = f"it reached its time limit of {run.script.limit_s:g} s"
            return _finished(run, ReasonCode.TIME_LIMIT, message)
        case "NODE_DIED":
            return _finished(run, ReasonCode.NODE_DIED, "a node died under it")
        case "UNWOUND":
            return RunEvent(
                attempt,
                AttemptEvent.REJECTED,
                at,
                reason=ReasonCode.GANG_UNWOUND,
                message="its gang could not be bound whole",
            )
        case _:
            return RunEvent(attempt, AttemptEvent.STOPPED, at, reason=STOPPED_BY.get(how))


def _finished(run: Run, reason: ReasonCode, message: str) -> RunEvent:
    return RunEvent(run.attempt, AttemptEvent.FINISHED, run.ended, reason=reason, message=message)
