"""Submits jobs: checked, then committed together with what else arrives, once per request key.

What depends on the store (queues, dependencies, capacity) may have changed since a call was made
for the first time: a repeated call finds its jobs even when it would be refused by now.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from atoll.core.model.actor import Actor
from atoll.core.model.deadline import Verdict
from atoll.core.model.errors import (
    DomainError,
    Exhausted,
    FailedPrecondition,
    InvalidInput,
    NotFound,
)
from atoll.core.model.ids import ShardId
from atoll.core.model.job import SubmitRequest
from atoll.core.model.plan import request_of
from atoll.ports.clock import Clock, Ids
from atoll.ports.notify import Notifier
from atoll.ports.store.common import UnknownOutcome
from atoll.ports.store.retry import retrying
from atoll.ports.store.submission import SubmissionStore
from atoll.submission.usecases.admission import Admission
from atoll.submission.usecases.checks import Known, check_drafts, ranked
from atoll.submission.usecases.deadlines import PromiseDesk, Verdicts, verdicts_for
from atoll.submission.usecases.dependencies import check_dependencies
from atoll.submission.usecases.drafts import Draft, Member, expand
from atoll.submission.usecases.group_commit import GroupCommit
from atoll.submission.usecases.write_jobs import (
    Call,
    Submitted,
    check_calls,
    make_call,
    outcome,
    write_calls,
)

MOST_JOBS_PER_COMMIT: Final = 2_000
OUTCOME_TRIES: Final = 3
NOBODY: Final[Verdicts] = {}
MAY_HAVE_CHANGED: Final = (InvalidInput, NotFound, FailedPrecondition, Exhausted)
"""Refusals that the same call might not have met when it came first."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One SubmitJobs call."""

    drafts: tuple[Draft, ...]
    key: str
    """The request's UUID; empty: nobody will repeat it."""
    body_hash: bytes
    """SHA-256 of the canonical request."""
    trace: str = ""
    """W3C traceparent to store with the jobs."""


class Submitter:
    """Takes jobs in.

    `known` are the names that specs may use; `most_queued` is the bound of queues that have none
    of their own; `committed` is told of each transaction: jobs in it, seconds.
    """

    def __init__(
        self,
        store: SubmissionStore,
        *,
        notifier: Notifier,
        admission: Admission,
        desk: PromiseDesk,
        clock: Clock,
        ids: Ids,
        known: Known,
        most_queued: int,
        committed: Callable[[int, float], None],
    ) -> None:
        self._store = store
        self._notifier = notifier
        self._admission = admission
        self._desk = desk
        self._clock = clock
        self._ids = ids
        self._known = known
        self._most_queued = most_queued
        self._committed = committed
        self._commits: GroupCommit[Call, Submitted] = GroupCommit(
            self._commit,
            weight=lambda call: len(call.members),
            key=lambda call: call.request.key,
            most=MOST_JOBS_PER_COMMIT,
        )

    async def submit(self, actor: Actor, submission: Submission) -> Submitted:
        """Write the jobs of a call, or find those that an earlier call of its key wrote."""
        drafts, members = self._checked(submission.drafts)
        try:
            shards = await self._admitted(actor, drafts, members)
            verdicts = await verdicts_for(self._desk, members, shards, keep=True)
            call = self._call(actor, submission, members=members, shards=shards, verdicts=verdicts)
            return await self._commits.submit(call)
        except MAY_HAVE_CHANGED as refusal:
            if not submission.key:
                raise
            call = self._call(actor, submission, members=members)
            return await self._replayed(call, refusal)

    async def check(self, actor: Actor, submission: Submission) -> tuple[Verdict | None, ...]:
        """All that `submit` would check; nothing is written. What it would tell of deadlines."""
        drafts, members = self._checked(submission.drafts)
        shards = await self._admitted(actor, drafts, members)
        verdicts = await verdicts_for(self._desk, members, shards, keep=False)
        call = self._call(actor, submission, members=members, shards=shards)
        async with self._store.begin() as tx:
            await check_calls(tx, [call], most_queued=self._most_queued)
        return tuple(verdicts.get(at) for at in range(len(members))) if verdicts else ()

    def _checked(self, drafts: Sequence[Draft]) -> tuple[list[Draft], tuple[Member, ...]]:
        check_drafts(drafts, self._known)
        ready = [ranked(draft, self._known.classes) for draft in drafts]
        return ready, expand(ready)

    async def _admitted(
        self, actor: Actor, drafts: Sequence[Draft], members: Sequence[Member]
    ) -> tuple[ShardId, ...]:
        await check_dependencies(self._store, actor.tenant, drafts)
        fitting = await self._admission.shards_for([request_of(draft.spec) for draft in drafts])
        options = (fitting[member.draft] for member in members)
        return tuple(option[i % len(option)] for i, option in enumerate(options))

    def _call(
        self,
        actor: Actor,
        submission: Submission,
        *,
        members: tuple[Member, ...],
        shards: tuple[ShardId, ...] = (),
        verdicts: Verdicts = NOBODY,
    ) -> Call:
        # Always with a key: it tells whether a commit whose reply was lost has happened.
        key = submission.key or self._ids.uuid()
        request = SubmitRequest(actor.tenant, key, submission.body_hash, ())
        return make_call(
            actor,
            request,
            members=members,
            shards=shards,
            trace=submission.trace,
            verdicts=verdicts,
        )

    async def _commit(self, calls: Sequence[Call]) -> Sequence[Submitted | Exception]:
        begun = self._clock.monotonic()
        for last in (False,) * (OUTCOME_TRIES - 1) + (True,):
            try:
                results = await retrying(
                    lambda: self._write(calls), clock=self._clock, ids=self._ids
                )
            except UnknownOutcome:
                if last:
                    raise
            else:
                self._notifier.ring()
                jobs = sum(len(call.members) for call in calls)
                self._committed(jobs, self._clock.monotonic() - begun)
                return results
        raise AssertionError("the last try returns or raises")

    async def _write(self, calls: Sequence[Call]) -> Sequence[Submitted | DomainError]:
        async with self._store.begin() as tx:
            return await write_calls(tx, calls, most_queued=self._most_queued)

    async def _replayed(self, call: Call, refusal: DomainError) -> Submitted:
        async with self._store.begin() as tx:
            (standing,) = await tx.add_requests([call.request])
            if standing is None:
                raise refusal  # and so the key is not taken
        found = outcome(call, standing)
        if isinstance(found, DomainError):
            raise found
        return found
