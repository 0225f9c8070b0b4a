"""The people who submit jobs, and sometimes think better of it."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Final

from numpy.random import Generator

from atoll.core.model.actor import Actor
from atoll.core.model.errors import DomainError, Unavailable
from atoll.core.model.ids import JobId, Tenant
from atoll.ports.clock import Clock
from atoll.sim.service.witness import Story
from atoll.sim.work import Work
from atoll.submission.servicer import UseCases
from atoll.submission.usecases.drafts import Draft
from atoll.submission.usecases.submit import Submission

ACTOR: Final = Actor("sim", Tenant("default"))
RETRY_S: Final = 1.0


class Users:
    """They try again with the same key until they have an answer, as the client library does.

    Of all jobs a share of `cancelled` is regretted, within twice the run time after the submit.
    """

    def __init__(
        self, use: UseCases, rng: Generator, *, story: Story, clock: Clock, cancelled: float
    ) -> None:
        self.acknowledged: set[JobId] = set()
        self.refused = 0
        self._use = use
        self._rng = rng
        self._story = story
        self._clock = clock
        self._cancelled = cancelled

    async def submit_all(self, works: Sequence[Work]) -> None:
        """Submit each job at its time; returns when all have an answer and nobody regrets."""
        async with asyncio.TaskGroup() as group:
            for work in works:
                regrets = self._rng.random() < self._cancelled
                after = 2 * work.run_s * float(self._rng.random()) if regrets else None
                await self._clock.sleep(work.at - self._story.now)
                group.create_task(self._submit(work, cancel_after=after))

    async def _submit(self, work: Work, *, cancel_after: float | None) -> None:
        key = hashlib.sha256(work.spec.name.encode()).hexdigest()[:32]
        submission = Submission((Draft(work.spec),), key=key, body_hash=key.encode())
        try:
            jobs = await self._answer(submission)
        except DomainError as refusal:
            self.refused += 1
            self._story.tell(f"{work.spec.name} is refused: {refusal}")
            return
        self.acknowledged.update(jobs)
        if cancel_after is not None:
            await self._clock.sleep(cancel_after)
            await self._cancel(jobs)

    async def _answer(self, submission: Submission) -> Sequence[JobId]:
        while True:
            try:
                return (await self._use.submitter.submit(ACTOR, submission)).jobs
            except Unavailable:
                await self._clock.sleep(RETRY_S)

    async def _cancel(self, jobs: Sequence[JobId]) -> None:
        while True:
            try:
                await self._use.changer.cancel(ACTOR, jobs)
            except Unavailable:
                await self._clock.sleep(RETRY_S)
            else:
                self._story.tell(f"job {jobs[0]} is cancelled by its user", jobs[0])
                return
