"""Answers why a job waits, or where it is, from the leader's own memory."""

import asyncio
from dataclasses import dataclass
from typing import assert_never

from atoll.core.engine.explain import ClusterTally, explain
from atoll.core.engine.holders import Holder, holders
from atoll.core.model.burst_wants import Candidate
from atoll.core.model.errors import ErrorCode, NotFound
from atoll.core.model.ids import JobId, attempt_name, job_of
from atoll.core.model.lifecycle import JobState
from atoll.core.model.plan import Nomination
from atoll.core.model.reason import Reason, ReasonCode
from atoll.placement.usecases.candidates import candidates_of
from atoll.placement.usecases.etas import Eta, eta_of, local_eta
from atoll.placement.usecases.leader import Leader


@dataclass(frozen=True, slots=True)
class Answer:
    """Why a job is where it is, as of one snapshot."""

    state: JobState
    summary: str
    as_of: float
    reasons: tuple[Reason, ...] = ()
    tallies: tuple[ClusterTally, ...] = ()
    jobs_ahead: int = 0
    fits_now: bool = False
    holders: tuple[Holder, ...] = ()
    """Running work that holds what it needs."""
    eta: Eta | None = None
    """When it will start, as far as somebody can tell."""
    hold: Nomination | None = None
    """What is held for it while its victims end, or a rented machine boots."""
    candidates: tuple[Candidate, ...] = ()
    """Where it could run, the best first."""


async def explain_job(leader: Leader, job: JobId) -> Answer:
    """The answer for one job; the cycle is not disturbed. Raises NotFound."""
    state = (await leader.store.job_states([job])).get(job)
    if state is None:
        raise NotFound(
            f"there is no job {job}", code=ErrorCode.JOB_NOT_FOUND, metadata={"job": str(job)}
        )
    now = leader.clock.now()
    if state is JobState.QUEUED:
        return await _queued(leader, job, now=now)
    return Answer(state, _summary(leader, job, state), now, reasons=_why(state))


async def _queued(leader: Leader, job: JobId, *, now: float) -> Answer:
    world = leader.memory.world
    pending = world.pending(job)
    if pending is None:
        return Answer(JobState.QUEUED, "it was just queued: the next cycle sees it", now)
    snapshot, ahead = world.look(now), world.jobs_ahead(pending)
    # Off the event loop: it looks at every node.
    found = await asyncio.to_thread(
        explain, snapshot, pending, leader.policies, now=now, ahead=ahead
    )
    hold = world.ledger.nominations.get(job)
    return Answer(
        state=JobState.QUEUED,
        summary=found.summary if hold is None else _held(leader, hold, now),
        as_of=now,
        reasons=found.reasons,
        tallies=found.tallies,
        jobs_ahead=found.jobs_ahead,
        fits_now=found.fits_now,
        holders=() if found.fits_now else holders(snapshot, pending.request),
        eta=eta_of(leader, pending, now=now),
        hold=hold,
        candidates=await candidates_of(
            leader,
            snapshot,
            pending,
            eta=local_eta(leader, pending, now=now),
            made=leader.foresight.latest,
        ),
    )


def _held(leader: Leader, hold: Nomination, now: float) -> str:
    rental = leader.memory.world.ledger.rented.get(hold.cluster)
    if rental is not None:
        soon = max(0.0, rental.ready_at - now)
        return (
            f"{rental.offer.instance_type} in {rental.offer.zone} is rented for it as cluster"
            f" {hold.cluster}, and boots for another {soon:.0f} seconds: it starts there, or where"
            " else there is room first"
        )
    runs = f"{len(hold.victims)} runs that are" if len(hold.victims) != 1 else "a run that is"
    return (
        f"its place on cluster {hold.cluster} is held for another {max(0.0, hold.until - now):.0f}"
        f" seconds; it starts as soon as {runs} being stopped for it have ended"
    )


def _summary(leader: Leader, job: JobId, state: JobState) -> str:
    match state:
        case JobState.HELD:
            return "held by its user: `atoll release` lets it run"
        case JobState.ASSIGNED | JobState.RUNNING:
            return _where(leader, job, state)
        case JobState.SUCCEEDED | JobState.FAILED | JobState.CANCELLED:
            return f"it has ended: {state.lower()}"
        case JobState.QUEUED:
            return "queued"
        case _:
            assert_never(state)


def _where(leader: Leader, job: JobId, state: JobState) -> str:
    verb = "running on" if state is JobState.RUNNING else "assigned to"
    for attempt, live in leader.memory.live.items():
        if job_of(attempt) == job:
            end = ", being stopped" if live.stopping else ""
            return f"{verb} cluster {live.cluster} as attempt {attempt_name(attempt)}{end}"
    return f"{state.lower()}; the leader has not seen its attempt yet"


def _why(state: JobState) -> tuple[Reason, ...]:
    if state is not JobState.HELD:
        return ()
    return (Reason(ReasonCode.HELD, "held by its user", help="atoll release"),)
