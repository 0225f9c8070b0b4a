"""When a queued job will start, as it is told: what was promised, else what is forecast."""

import asyncio
import math
from dataclasses import dataclass, replace
from typing import Final, assert_never

import numpy as np

from atoll.core.engine.choice.places import held_sentence
from atoll.core.engine.timeline.eta_kernels import LEVELS
from atoll.core.engine.timeline.expected_runs import STRETCH
from atoll.core.engine.timeline.forecast import Cause, Forecast, Point, forecast
from atoll.core.engine.timeline.joining import joined
from atoll.core.engine.trial import Trial
from atoll.core.model.burst import Rental
from atoll.core.model.ids import ClusterName, JobId, attempt_id
from atoll.core.model.plan import Nomination, PendingJob, Promise
from atoll.core.state.ledger import Holding
from atoll.core.state.run_times import ended_run
from atoll.placement.usecases.leader import Leader

NOWHERE: Final = ClusterName("")
AT_ONCE: Final = Point(0.0, NOWHERE, Cause.TURN, 0.0)
MOST_TRIES: Final = 64
"""Attempts of a job among which the live one is looked for."""
MOST_LINKS: Final = 8
"""Jobs that wait for one another, one after the other, as far as it is followed."""


@dataclass(frozen=True, slots=True)
class Eta:
    """A forecast of a start, or a promise. Times are unix seconds."""

    p50_at: float
    p90_at: float
    if_nothing_arrives_at: float
    cause: str
    promised: bool = False
    cluster: ClusterName = NOWHERE


def eta_of(leader: Leader, pending: PendingJob, *, now: float) -> Eta | None:
    """When a queued job will start; None: nobody can tell (yet)."""
    here, rental = local_eta(leader, pending, now=now), held_rental(leader, pending.id)
    if rental is None:
        return here
    there = _on_rented(rental, now=now)
    return there if here is None or there.p50_at <= here.p50_at else here


def held_rental(leader: Leader, job: JobId) -> Rental | None:
    """The rented machine that is held for a job."""
    ledger = leader.memory.world.ledger
    hold = ledger.nominations.get(job)
    return ledger.rented.get(hold.cluster) if hold is not None else None


def local_eta(leader: Leader, pending: PendingJob, *, now: float) -> Eta | None:
    """The same without rented machines."""
    hold = leader.memory.world.ledger.nominations.get(pending.id)
    if hold is not None and hold.cluster not in leader.memory.world.ledger.rented:
        return _held(leader, hold, now=now)
    promise = leader.outlook.promise_of(pending.id)
    if promise is not None:
        return _promised(promise)
    found = _point(leader, leader.foresight.latest, pending, now=now)
    if pending.guaranteed and pending.deadline_at:
        return _guaranteed(leader, pending, found[0] if found else None, now=now)
    if found is None:
        return None
    point, cause = found
    if point.cause is Cause.BOOKING and pending.request.reservation:
        at = point.start
        return Eta(at, at, at, f"booking {point.name} begins", True, cluster=point.cluster)
    return told(leader, point, cause, now=now)


def eta_of_plan(
    leader: Leader, pending: PendingJob, trial: Trial, *, made: Forecast, now: float
) -> Eta | None:
    """When a job would start that is not submitted yet. `made`: a forecast with it."""
    if starts_at_once(trial, pending, now=now):
        stopped = (leader.memory.world.ledger.holdings.get(v.attempt) for v in trial.victims)
        grace_s = [run.run.terms.grace_s for run in stopped if run is not None and run.run]
        start = now + max(grace_s, default=0.0)
        cause = "runs are stopped for it first" if trial.victims else sentence(AT_ONCE)
        return Eta(start, start, start, cause, cluster=trial.cluster or NOWHERE)
    found = _point(leader, made, pending, now=now) if trial.ever else None
    return None if found is None else told(leader, *found, now=now)


def starts_at_once(trial: Trial, pending: PendingJob, *, now: float) -> bool:
    """Whether there is a place for a job that is not submitted yet, and nothing it waits for."""
    return trial.cluster is not None and not pending.depends_on and pending.begin_at <= now


async def forecast_with(leader: Leader, pending: PendingJob, *, now: float) -> Forecast:
    """A forecast in which a job comes last that is not submitted yet."""
    survey = joined(leader.memory.world.survey(now), pending)
    rng = np.random.default_rng((leader.fence.epoch.revision, leader.foresight.made))
    return await asyncio.to_thread(forecast, survey, leader.policies, rng=rng)


def told(leader: Leader, point: Point, cause: str, *, now: float) -> Eta:
    """A point with the chances that past forecasts give it."""
    start = max(now, point.start)
    waits = leader.foresight.record.quantiles_s(start - now)
    half, most = (now + waits[LEVELS.index(level)] for level in (0.5, 0.9))
    return Eta(half, most, start, cause, cluster=point.cluster)


def sentence(point: Point) -> str:
    """What a job waits for."""
    match point.cause:
        case Cause.TURN:
            return "there is room for it: it is placed as soon as it is its turn"
        case Cause.ROOM:
            return f"runs on cluster {point.cluster} have to end before there is room for it"
        case Cause.AHEAD:
            return (
                f"jobs before it have to run first: {_long(point.ahead_s)} of everything that"
                f" it may run on in cluster {point.cluster}"
            )
        case Cause.LIMIT:
            return f"QUEUE_LIMIT: runs of queue {point.name} have to end, whose limit is reached"
        case Cause.BOOKING:
            return f"RESERVED: it waits for booking {point.name}"
        case _:
            assert_never(point.cause)


def _long(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} hours"


def _point(
    leader: Leader,
    made: Forecast,
    pending: PendingJob,
    *,
    now: float,
    links: int = MOST_LINKS,
) -> tuple[Point, str] | None:
    point = made.of(pending)
    cause = "" if point is None else sentence(point)
    point = point or replace(AT_ONCE, start=now)
    if pending.begin_at > max(now, point.start):
        return replace(point, start=pending.begin_at), "it is not to begin before"
    if not pending.depends_on:
        return (point, cause) if cause else None
    ends = [_end_of(leader, job, now=now, links=links) for job in pending.depends_on]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return None
    last = max(known)
    if last < point.start and cause:
        return point, cause
    names = ", ".join(str(job) for job in pending.depends_on)
    return replace(point, start=max(last, point.start)), f"it waits for the end of {names}"


def _end_of(leader: Leader, job: JobId, *, now: float, links: int) -> float | None:
    """When a job that another waits for is expected to end."""
    world = leader.memory.world
    pending = world.pending(job)
    if pending is None:
        runs = (world.ledger.holdings.get(attempt_id(job, n)) for n in range(1, MOST_TRIES))
        run = next((each for each in runs if each is not None), None)
        return None if run is None else _end_of_run(leader, run, now=now)
    made = leader.foresight.latest
    found = _point(leader, made, pending, now=now, links=links - 1) if links else None
    if found is None:
        return None
    return found[0].start + world.expected(pending)[1]


def _end_of_run(leader: Leader, holding: Holding, *, now: float) -> float:
    run = holding.run
    limit_s = run.terms.time_limit_s if run is not None else 0.0
    like = ended_run(holding.queue, holding.tasks, limit_s=limit_s, ran_s=0.0)
    begun = run.started_at if run is not None else now
    ran_s, lasts_s = now - begun, leader.memory.world.run_times.view().one(like)[1]
    return begun + (lasts_s if lasts_s > ran_s else min(ran_s * STRETCH, limit_s or math.inf))


def _guaranteed(leader: Leader, pending: PendingJob, point: Point | None, *, now: float) -> Eta:
    """It will have started in time, whoever comes after it."""
    limit_s = pending.request.terms.time_limit_s or leader.memory.world.expected(pending)[1]
    latest = max(now, pending.deadline_at - limit_s)
    soonest = latest if point is None else min(latest, max(now, point.start))
    cause = "its deadline is guaranteed, and then it is time to start"
    cluster = NOWHERE if point is None else point.cluster
    return Eta(latest, latest, soonest, cause, promised=True, cluster=cluster)


def _held(leader: Leader, hold: Nomination, *, now: float) -> Eta:
    rental = leader.memory.world.ledger.rented.get(hold.cluster)
    if rental is not None:
        soon = max(now, rental.ready_at)
        cause = "its rented machine boots: it starts there, or where else there is room first"
        return Eta(soon, max(soon, hold.until), soon, cause, cluster=hold.cluster)
    held = (leader.memory.world.ledger.holdings.get(victim) for victim in hold.victims)
    grace_s = (each.run.terms.grace_s for each in held if each is not None and each.run is not None)
    soon = now + max(grace_s, default=0.0)
    until = max(soon, hold.until)
    cause = "its place is held: it starts when those that are being stopped for it have ended"
    return Eta(soon, until, soon, cause, cluster=hold.cluster)


def _on_rented(rental: Rental, *, now: float) -> Eta:
    soon = max(now, rental.ready_at)
    late = max(soon, rental.give_up_at)
    cause = held_sentence(rental, now=now)
    return Eta(soon, late, soon, cause, cluster=rental.cluster)


def _promised(promise: Promise) -> Eta:
    start = promise.start
    cause = "it has a reservation of its own"
    return Eta(start, start, start, cause, promised=True, cluster=promise.cluster)
