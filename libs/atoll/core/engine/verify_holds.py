"""Holds in the check before a commit: nobody else takes them, and they will be there."""

from collections.abc import Iterable

import numpy as np

from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import JobId, attempt_name
from atoll.core.model.plan import Nomination, Plan
from atoll.core.state.columns import Nodes, scratch_copy
from atoll.core.state.ledger import Ledger, flatten
from atoll.core.state.ledger_kernels import FINE, give_tasks, take_gangs, take_tasks


def beside_holds(ledger: Ledger, jobs: Iterable[JobId]) -> Nodes:
    """A copy of what is free for jobs: without what is held for others."""
    mine = set(jobs)
    return _take(scratch_copy(ledger.table.nodes), _others(ledger, mine), ledger)


def verify_holds(plan: Plan, ledger: Ledger) -> None:
    """Raise DomainError PLAN_INVALID unless all new holds are there once the victims are gone."""
    if not (plan.nominations or plan.evictions):
        return
    for eviction in plan.evictions:
        if eviction.attempt not in ledger.holdings:
            raise _invalid(f"attempt {attempt_name(eviction.attempt)} holds nothing to give up")
    started = {p.job for p in plan.placements}
    twice = sorted(started & {n.job for n in plan.nominations})
    if twice:
        raise _invalid(f"job {twice[0]} is placed and nominated")
    for nomination in plan.nominations:
        if not ledger.rented.holds(nomination.cluster, nomination.job):
            raise _invalid(f"{nomination.cluster} is not rented for job {nomination.job}")
    _verify_room(plan, ledger, kept=_others(ledger, started | set(plan.released)))


def _verify_room(plan: Plan, ledger: Ledger, *, kept: list[Nomination]) -> None:
    nodes, table = scratch_copy(ledger.table.nodes), ledger.table
    wanted = {n.job: n for n in plan.nominations}
    victims = {v for n in (*kept, *plan.nominations) for v in n.victims if v in ledger.holdings}
    victims |= {eviction.attempt for eviction in plan.evictions}
    gone = flatten([ledger.holdings[victim].tasks for victim in sorted(victims)], table)
    give_tasks(nodes, gone, 0, len(gone.row))
    _take(nodes, [n for n in kept if n.job not in wanted], ledger)
    placed = flatten([p.tasks for p in plan.placements], table)
    take_tasks(nodes, placed, 0, len(placed.row))
    uses = flatten([n.tasks for n in plan.nominations], table)
    codes = take_gangs(nodes, table.arrays()[0].mode, uses, True)
    for at in np.flatnonzero(codes != FINE)[:1].tolist():
        raise _invalid(f"what is held for job {plan.nominations[at].job} will not be free")


def _others(ledger: Ledger, jobs: set[JobId]) -> list[Nomination]:
    return [n for job, n in sorted(ledger.nominations.items()) if job not in jobs]


def _take(nodes: Nodes, nominations: list[Nomination], ledger: Ledger) -> Nodes:
    if nominations:
        uses = flatten([n.tasks for n in nominations], ledger.table)
        take_tasks(nodes, uses, 0, len(uses.row))
    return nodes


def _invalid(message: str) -> DomainError:
    return DomainError(message, code=ErrorCode.PLAN_INVALID)
