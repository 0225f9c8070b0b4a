"""Sends the jobs of a trace when they are due, and watches until the last one has ended."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from atoll.cli.replay.arrivals import LABEL, Arrival, due
from atoll.cli.replay.checks import check_nodes
from atoll.client.aio import AsyncClient
from atoll.client.views import JobInfo
from atoll.client.waiting import batches
from atoll.core.model.errors import ErrorCode, Exhausted
from atoll.core.model.lifecycle import TERMINAL_JOB, JobState
from atoll.ports.clock import Clock

MOST_PER_CALL: Final = 500
FULL_PAUSE_S: Final = 0.5
LOOK_EVERY_S: Final = 2.0
TICK_S: Final = 0.2
QUIET_S: Final = 5.0
"""After so long without an event the jobs themselves are read, in case one was missed."""
WAITING: Final = (JobState.QUEUED, JobState.HELD)


@dataclass(slots=True)
class Progress:
    """How far the replay is; whoever shows it reads it."""

    total: int
    submitted: int = 0
    placed: int = 0
    ended: int = 0
    took_s: float = 0.0
    faults: list[str] = field(default_factory=list)
    """What was wrong with nodes while it ran."""
    looks: int = 0
    """Times that the nodes were looked at."""


class Replay:
    """One replay on one cluster; its jobs carry the label `replay=run`."""

    def __init__(self, client: AsyncClient, clock: Clock, *, run: str, cluster: str) -> None:
        self._client = client
        self._clock = clock
        self._run = run
        self._cluster = cluster
        self._mine: set[int] = set()
        self._states: dict[int, JobState] = {}
        self._heard_at = 0.0

    async def run(self, arrivals: Sequence[Arrival], progress: Progress) -> list[JobInfo]:
        """Submit all and wait for all; the jobs as they ended."""
        began = self._clock.monotonic()
        async with asyncio.TaskGroup() as tasks:
            beside = [
                tasks.create_task(self._listen()),
                tasks.create_task(self._keep_looking(progress)),
                tasks.create_task(self._count(progress, began)),
            ]
            await self._submit(arrivals, progress, began=began)
            await self._until_all_ended()
            for task in beside:
                task.cancel()
        if not progress.looks:  # it was over before the first look was
            await self._look(progress)
        self._counted(progress, began)
        return [job.info async for job in self._client.list(labels={LABEL: self._run})]

    async def _submit(
        self, arrivals: Sequence[Arrival], progress: Progress, *, began: float
    ) -> None:
        while progress.submitted < len(arrivals):
            first, now = progress.submitted, self._clock.monotonic() - began
            if come := due(arrivals, first=first, now_s=now, most=MOST_PER_CALL):
                progress.submitted += await self._sent(come)
            else:
                await self._clock.sleep(arrivals[first].at_s - now)

    async def _sent(self, come: Sequence[Arrival]) -> int:
        try:
            jobs = await self._client.submit([arrival.spec for arrival in come])
        except Exhausted as error:
            if error.code is not ErrorCode.QUEUE_FULL:
                raise
            await self._clock.sleep(FULL_PAUSE_S)
            return 0
        self._mine.update(job.id for job in jobs)
        return len(jobs)

    async def _listen(self) -> None:
        async for event in self._client.watch():
            # Of other jobs too: an event may come before the reply that tells the job's number.
            self._states[event.job_id] = event.state
            self._heard_at = self._clock.monotonic()

    async def _until_all_ended(self) -> None:
        while pending := self._pending():
            if self._clock.monotonic() - self._heard_at > QUIET_S:
                await self._read(pending)
            await self._clock.sleep(TICK_S)

    async def _read(self, pending: Sequence[int]) -> None:
        for ids in batches(pending):
            async for job in self._client.list(job_ids=ids):
                self._states[job.id] = job.state
        self._heard_at = self._clock.monotonic()

    def _pending(self) -> list[int]:
        return sorted(
            job_id for job_id in self._mine if self._states.get(job_id) not in TERMINAL_JOB
        )

    async def _look(self, progress: Progress) -> None:
        nodes = [node async for node in self._client.nodes(self._cluster)]
        # What is wrong is told once, however many looks see it.
        known = set(progress.faults)
        progress.faults += [fault for fault in check_nodes(nodes) if fault not in known]
        progress.looks += 1

    async def _keep_looking(self, progress: Progress) -> None:
        while True:
            began = self._clock.monotonic()
            await self._look(progress)
            # A look at a large cluster costs; it must not become the load.
            await self._clock.sleep(max(LOOK_EVERY_S, 5 * (self._clock.monotonic() - began)))

    async def _count(self, progress: Progress, began: float) -> None:
        while True:
            self._counted(progress, began)
            await self._clock.sleep(TICK_S)

    def _counted(self, progress: Progress, began: float) -> None:
        states = [self._states.get(job_id, JobState.QUEUED) for job_id in self._mine]
        progress.placed = sum(1 for state in states if state not in WAITING)
        progress.ended = sum(1 for state in states if state in TERMINAL_JOB)
        progress.took_s = self._clock.monotonic() - began
