"""Answers about shares, priorities and jobs that are not submitted yet, between the cycles.

What takes long runs on a frozen snapshot, off the event loop; nothing is written.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from atoll.core.engine.cycle import CycleLimits
from atoll.core.engine.holders import Holder, holders
from atoll.core.engine.timeline.forecast import Forecast
from atoll.core.engine.trial import Trial, try_out
from atoll.core.model.booking import marks_of
from atoll.core.model.burst_wants import Candidate
from atoll.core.model.errors import ErrorCode, InvalidInput, NotFound
from atoll.core.model.ids import JobId, QueueName, Tenant, attempt_name
from atoll.core.model.lifecycle import JobState
from atoll.core.model.plan import Eviction, PendingJob, request_of
from atoll.core.model.priority import PriorityClass
from atoll.core.model.reason import Reason
from atoll.core.model.spec import JobSpec
from atoll.core.model.validate import check_spec
from atoll.core.policies.factors import Factor, ShareRow, priority_factors, shares
from atoll.core.state.mig import ALL_PROFILES
from atoll.placement.usecases.candidates import candidates_of
from atoll.placement.usecases.etas import (
    Eta,
    eta_of,
    eta_of_plan,
    forecast_with,
    starts_at_once,
)
from atoll.placement.usecases.leader import Leader

NO_JOB = JobId(0)


@dataclass(frozen=True, slots=True)
class VictimView:
    """A run that would be stopped."""

    attempt: str
    queue: str
    cluster: str
    priority: int
    grace_s: float


@dataclass(frozen=True, slots=True)
class Planned:
    """What would become of a job."""

    summary: str
    trial: Trial
    victims: tuple[VictimView, ...]
    holders: tuple[Holder, ...]
    eta: Eta | None
    as_of: float
    candidates: tuple[Candidate, ...] = ()
    """Where it could run, the best first."""


@dataclass(frozen=True, slots=True)
class SharesAnswer:
    """Queues, by name."""

    rows: tuple[ShareRow, ...]
    as_of: float


@dataclass(frozen=True, slots=True)
class PriorityAnswer:
    """What places a job."""

    state: JobState
    factors: tuple[Factor, ...]
    jobs_ahead: int
    as_of: float


@dataclass(frozen=True, slots=True)
class WaitView:
    """Why one job waits; None: it was not tried yet."""

    job: JobId
    reason: Reason | None
    eta: Eta | None


def checked_spec(spec: JobSpec, classes: Mapping[str, PriorityClass]) -> JobSpec:
    """The spec with the priority of its class; raises InvalidInput when it breaks a rule."""
    if found := check_spec(spec, at="spec", profiles=ALL_PROFILES, classes=classes):
        raise InvalidInput(tuple(found))
    ranked = classes[spec.priority_class]
    return replace(spec, priority=ranked.priority, preempts=spec.preempts and ranked.preempts)


async def plan_job(leader: Leader, spec: JobSpec, tenant: Tenant, *, user: str = "") -> Planned:
    """A dry run of a checked spec for a user. Raises NotFound QUEUE_NOT_FOUND."""
    queue = leader.memory.queues.get(QueueName(spec.queue))
    if queue is None or queue.tenant != tenant:
        raise NotFound(
            f"there is no queue {spec.queue!r}; `atoll queue ls` lists those there are",
            code=ErrorCode.QUEUE_NOT_FOUND,
            metadata={"queue": spec.queue},
        )
    world, now = leader.memory.world, leader.clock.now()
    pending = await _pending(leader, spec, user, now=now)
    snapshot, ahead = world.look(now), world.jobs_ahead(pending)
    rng = np.random.default_rng((leader.fence.epoch.revision, leader.counters.cycles))
    limits = CycleLimits(bind_s=leader.rules.bind_timeout_s)
    trial = await asyncio.to_thread(
        try_out, snapshot, pending, leader.policies, now=now, rng=rng, ahead=ahead, limits=limits
    )
    at_once = starts_at_once(trial, pending, now=now) or not trial.ever
    made = Forecast(now) if at_once else await forecast_with(leader, pending, now=now)
    eta = eta_of_plan(leader, pending, trial, made=made, now=now)
    return Planned(
        summary=_summary(trial),
        trial=trial,
        victims=tuple(_victim(leader, eviction) for eviction in trial.victims),
        holders=() if trial.cluster else holders(snapshot, pending.request),
        eta=eta,
        as_of=now,
        candidates=await candidates_of(leader, snapshot, pending, eta=eta, made=made),
    )


async def get_shares(leader: Leader, queue: str) -> SharesAnswer:
    """Shares of a queue and of all below it; empty: of all. Raises NotFound."""
    now = leader.clock.now()
    snapshot = leader.memory.world.look(now)
    rows = await asyncio.to_thread(shares, snapshot, leader.policies)
    if queue:
        rows = tuple(r for r in rows if r.queue == queue or r.queue.startswith(f"{queue}."))
    if queue and not rows:
        raise NotFound(
            f"there is no queue {queue!r}",
            code=ErrorCode.QUEUE_NOT_FOUND,
            metadata={"queue": queue},
        )
    return SharesAnswer(rows, now)


async def get_priority(leader: Leader, job: JobId) -> PriorityAnswer:
    """The factors of a job; none unless it is queued. Raises NotFound."""
    state = (await leader.store.job_states([job])).get(job)
    if state is None:
        raise NotFound(
            f"there is no job {job}", code=ErrorCode.JOB_NOT_FOUND, metadata={"job": str(job)}
        )
    world, now = leader.memory.world, leader.clock.now()
    pending = world.pending(job)
    if state is not JobState.QUEUED or pending is None:
        return PriorityAnswer(state, (), 0, now)
    snapshot, ahead = world.look(now), world.jobs_ahead(pending)
    expected = world.expected(pending)
    factors = await asyncio.to_thread(
        priority_factors, snapshot, pending, leader.policies, now=now, expected=expected
    )
    return PriorityAnswer(state, factors, ahead, now)


def list_waits(leader: Leader, jobs: Sequence[JobId]) -> list[WaitView]:
    """Why jobs wait, as the last cycles found it; those that are not queued are left out."""
    world, now = leader.memory.world, leader.clock.now()
    found = ((job, world.pending(job)) for job in jobs)
    return [
        WaitView(job, leader.outlook.wait_of(pending, now=now), eta_of(leader, pending, now=now))
        for job, pending in found
        if pending is not None
    ]


async def _pending(leader: Leader, spec: JobSpec, user: str, *, now: float) -> PendingJob:
    states = await leader.store.job_states(spec.depends_on) if spec.depends_on else {}
    pending = PendingJob(
        id=NO_JOB,
        revision=0,
        queue=QueueName(spec.queue),
        priority=spec.priority,
        submitted_at=now,
        request=request_of(spec),
        begin_at=spec.begin_at,
        depends_on=tuple(
            job for job in spec.depends_on if states.get(job) is not JobState.SUCCEEDED
        ),
        deadline_at=spec.deadline_at,
    )
    return leader.memory.marks.marked(pending, marks_of(user, spec.labels))


def _summary(trial: Trial) -> str:
    if trial.cluster and not trial.victims:
        ahead = trial.explanation.jobs_ahead
        after = f", if the {ahead:,} jobs before it leave it room" if ahead else ""
        return f"it would start now on cluster {trial.cluster}{after}"
    if trial.cluster:
        count = len(trial.victims)
        runs = "one run has" if count == 1 else f"{count} runs have"
        return f"it would start on cluster {trial.cluster} once {runs} been stopped for it"
    if not trial.ever:
        return f"it can never run: {trial.explanation.summary}"
    return f"it would wait: {trial.explanation.summary}"


def _victim(leader: Leader, eviction: Eviction) -> VictimView:
    held = leader.memory.world.ledger.holdings.get(eviction.attempt)
    run = held.run if held is not None else None
    return VictimView(
        attempt=attempt_name(eviction.attempt),
        queue=held.queue if held is not None else "",
        cluster=eviction.cluster,
        priority=run.priority if run is not None else 0,
        grace_s=run.terms.grace_s if run is not None else 0.0,
    )
