"""The events of a pool of processors: jobs come, start when the engine says so, and end."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from atoll.core.engine.timeline.backfill_kernels import Found, backfill
from atoll.core.engine.timeline.conservative_kernels import hold, move_forward
from atoll.core.engine.timeline.eta_kernels import Calibration, drain, note_start, quantile
from atoll.core.engine.timeline.profile_kernels import Steps, add, of_ends, trim
from atoll.core.engine.timeline.rank_kernels import Forms, find_oldest, rank
from atoll.core.policies.time_order import TimeOrder
from atoll.core.state.backlog_kernels import Backlog, fade, note_run
from atoll.core.state.history_kernels import Alive, Bools, Floats, History, Ints, expect, note
from atoll.sim.pool_kernels import Log, Pool, begin, due, end_next, forget_started, next_event

NONE: Final = -1.0
"""A forecast that was not needed: the job started at once."""
_STRETCH: Final = 1.5
"""A run that has outlived what was expected is expected to last so many times as long."""
_STUCK: Final = 0.5
"""A job waits for this part of what the oldest of its like has waited already, at least."""


class Knowledge(NamedTuple):
    """What the policy has learnt."""

    history: History
    alive: Alive
    changed: Bools
    """(U) owners of whom something new is known."""
    forms: Forms
    backlog: Backlog
    calibration: Calibration


class Told(NamedTuple):
    """Forecasts given at submit, (J) waits in seconds; NONE for jobs that started at once."""

    point: Floats
    quantiles: Floats
    """(J, LEVELS)."""


class Scratch(NamedTuple):
    """Room to work in."""

    steps: Steps
    kept: Steps
    """What the reservations of a conservative policy leave."""
    starts: Floats
    """(J) when those begin."""
    ends: Floats
    amounts: Ints
    found: Found


class Run(NamedTuple):
    """A simulation."""

    log: Log
    pool: Pool
    knowledge: Knowledge
    told: Told
    scratch: Scratch


@njit(cache=True, nogil=True)
def simulate(run: Run, policy: TimeOrder, events: int) -> bool:
    """Go on for some events; False when all jobs have ended."""
    log, pool, scratch = run.log, run.pool, run.scratch
    for _ in range(events):
        pool.now[0] = next_event(log, pool)
        if pool.now[0] == np.inf:
            return False
        first = pool.came[0]
        early = _end(run, policy)
        if policy.by_urgency:
            _expect_anew(run, policy)
        while pool.came[0] < log.run.shape[0] and _is_due(log, pool):
            _submit(run, policy)
        if policy.keeps:
            _start_kept(run, early)
        elif pool.waits[0] > 0 and (pool.free[0] > 0 or pool.came[0] > first):
            _pass(run, policy)
        _forecast(run, policy, first)
        if policy.keeps:
            trim(scratch.kept, pool.now[0])
    return True


@njit(cache=True, nogil=True)
def _is_due(log: Log, pool: Pool) -> bool:
    return bool(log.line.submitted[pool.came[0]] <= pool.now[0])


@njit(cache=True, nogil=True)
def _end(run: Run, policy: TimeOrder) -> bool:
    log, pool, knowledge = run.log, run.pool, run.knowledge
    now, early = pool.now[0], False
    while pool.runs[0] > 0 and pool.end[pool.heap[0]] <= now:
        job = end_next(log, pool)
        need, owner, form = log.asks.need[job], log.owner[job], log.line.form[job]
        if policy.keeps and due(log, pool, job) > now:
            add(run.scratch.kept, now, due(log, pool, job), need)
            early = True
        knowledge.forms.running[form] -= 1
        knowledge.forms.ended[form] = now
        knowledge.changed[owner] = True
        note(knowledge.history, owner, log.run[job], log.asks.length[job], need)
        submitted, share = log.line.submitted[job], need / pool.processors
        half_life_s = policy.ageing.half_life_s
        note_run(knowledge.backlog, submitted, pool.start[job], now, share, half_life_s)
    return early


@njit(cache=True, nogil=True)
def _submit(run: Run, policy: TimeOrder) -> None:
    log, pool = run.log, run.pool
    job = pool.came[0]
    pool.came[0] += 1
    run.knowledge.forms.waiting[log.line.form[job]] += 1
    _expect(run, policy, job)
    pool.waiting[pool.waits[0]] = job
    pool.waits[0] += 1
    if policy.keeps:
        hold(run.scratch.kept, log.asks, run.scratch.starts, job, pool.now[0])


@njit(cache=True, nogil=True)
def _expect_anew(run: Run, policy: TimeOrder) -> None:
    log, pool, changed = run.log, run.pool, run.knowledge.changed
    for i in range(pool.waits[0]):
        if changed[log.owner[pool.waiting[i]]]:
            _expect(run, policy, pool.waiting[i])
    changed[:] = False


@njit(cache=True, nogil=True)
def _expect(run: Run, policy: TimeOrder, job: int) -> None:
    log, pool, alive = run.log, run.pool, run.knowledge.alive
    owner, living = log.owner[job], 0
    if policy.trust.living > 0.0:
        for i in range(pool.runs[0]):
            other = pool.running[i]
            if log.owner[other] == owner and living < alive.ran.shape[0]:
                alive.ran[living] = pool.now[0] - pool.start[other]
                alive.request[living] = log.asks.length[other]
                alive.size[living] = log.asks.need[other]
                living += 1
    length, need = log.asks.length[job], log.asks.need[job]
    found = expect(run.knowledge.history, alive, living, owner, length, need, policy.trust)
    log.line.hurry[job], log.line.length[job] = found


@njit(cache=True, nogil=True)
def _pass(run: Run, policy: TimeOrder) -> None:
    log, pool, scratch, knowledge = run.log, run.pool, run.scratch, run.knowledge
    now, order = pool.now[0], pool.waiting[: pool.waits[0]]
    largest = fade(knowledge.backlog, now, policy.ageing.half_life_s)
    rank(log.line, knowledge.forms, order, policy, pool.processors, largest, now)
    if pool.free[0] <= 0:
        return
    runs = pool.runs[0]
    for i in range(runs):
        scratch.ends[i] = due(log, pool, pool.running[i])
        scratch.amounts[i] = log.asks.need[pool.running[i]]
    of_ends(scratch.steps, pool.free[0], scratch.ends[:runs], scratch.amounts[:runs], now)
    for job in order:
        log.asks.may_hold[job] = log.line.aged[job] or not policy.only_aged
    most, found = policy.reservations, scratch.found
    started, _ = backfill(scratch.steps, order, log.asks, found, most, policy.strict)
    for i in range(started):
        _start(run, found.started[i])
    if started > 0:
        forget_started(pool)


@njit(cache=True, nogil=True)
def _start_kept(run: Run, early: bool) -> None:
    pool, scratch = run.pool, run.scratch
    now, order = pool.now[0], pool.waiting[: pool.waits[0]]
    if early:
        move_forward(scratch.kept, run.log.asks, scratch.starts, order, now)
    started = False
    for job in order:
        if scratch.starts[job] <= now:
            _start(run, job)
            started = True
    if started:
        forget_started(pool)


@njit(cache=True, nogil=True)
def _start(run: Run, job: int) -> None:
    log, pool, told, knowledge = run.log, run.pool, run.told, run.knowledge
    form = log.line.form[job]
    knowledge.forms.waiting[form] -= 1
    knowledge.forms.running[form] += 1
    begin(log, pool, job)
    if told.point[job] >= 0.0:
        waited = pool.now[0] - log.line.submitted[job]
        note_start(knowledge.calibration, told.point[job], told.quantiles[job], waited)


@njit(cache=True, nogil=True)
def _forecast(run: Run, policy: TimeOrder, first: int) -> None:
    """Tell the jobs from `first` on, which came now and did not start, when they will."""
    log, pool, scratch, told = run.log, run.pool, run.scratch, run.told
    waits = False
    for job in range(first, pool.came[0]):
        waits |= np.isnan(pool.start[job])
    if not waits:
        return
    _expect_ends(run)
    now, ahead, forms = pool.now[0], 0.0, run.knowledge.forms
    find_oldest(log.line, forms, pool.waiting[: pool.waits[0]])
    for job in pool.waiting[: pool.waits[0]]:
        need = log.asks.need[job]
        if job >= first:
            start = drain(scratch.steps, ahead, need)
            if policy.keeps:
                start = scratch.starts[job]
            stuck = _STUCK * (now - log.line.submitted[forms.oldest[log.line.form[job]]])
            told.point[job] = max(0.0, start - now, stuck)
            for level in range(told.quantiles.shape[1]):
                wait = quantile(run.knowledge.calibration, told.point[job], level)
                told.quantiles[job, level] = wait
        ahead += log.line.length[job] * need


@njit(cache=True, nogil=True)
def _expect_ends(run: Run) -> None:
    log, pool, scratch = run.log, run.pool, run.scratch
    now, runs = pool.now[0], pool.runs[0]
    ends, amounts = scratch.ends[:runs], scratch.amounts[:runs]
    for i in range(runs):
        job = pool.running[i]
        ran, lasts = now - pool.start[job], log.line.length[job]
        if lasts <= ran:
            lasts = ran * _STRETCH
        ends[i] = pool.start[job] + min(lasts, log.asks.length[job])
    by_end = np.argsort(ends)
    for i in range(runs):
        amounts[i] = log.asks.need[pool.running[by_end[i]]]
    of_ends(scratch.steps, pool.free[0], ends[by_end], amounts, now)
