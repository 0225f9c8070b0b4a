"""A queued job that is large, or has a guaranteed deadline, gets a booking of its own."""

from collections.abc import Iterator
from typing import Final

from atoll.core.engine.bookings.rules.wishes import (
    Book,
    Cancel,
    Facts,
    Verdict,
    Wish,
    live,
    name_of,
)
from atoll.core.model.booking import OnEnd, Owners, job_owner
from atoll.core.model.plan import GroupRequest, PendingJob
from atoll.core.model.reservation import (
    Amount,
    Flexible,
    Occurrence,
    Preference,
    ReservationSpec,
    What,
    When,
)
from atoll.core.model.resources import BLOCKS_PER_DEVICE
from atoll.core.model.standing_rule import LargeJobRule, Rule

AHEAD_S: Final = 90 * 86_400.0
"""How far ahead a window is looked for."""
SLACK_S: Final = 300.0
"""A window is longer than its job by this: a start takes time."""
IDLE_S: Final = 900.0
"""A window that its job does not use for so long is given back."""


def large_jobs(rule: Rule, kind: LargeJobRule, facts: Facts, *, now: float) -> Verdict:
    """Windows for jobs that have none, and no windows for jobs that do not wait any more."""
    wanted = {name_of(rule, str(job.id)): job for job in facts.pending if _is_large(kind, job)}
    have = {booked.spec.name: (booked, at) for booked, at in live(facts.made)}
    wishes: list[Wish] = []
    unable = 0
    for name, job in sorted(wanted.items(), key=lambda each: each[1].id):
        if name not in have:
            spec = _spec(name, job, now=now)
            unable += spec is None
            wishes += [] if spec is None else [Book(spec, _why(kind, job))]
    waiting = {name_of(rule, str(job.id)) for job in facts.pending}
    for name, (booked, at) in sorted(have.items()):
        if name not in waiting and _is_unused(at, now=now):
            wishes.append(Cancel(booked.id, "its job does not wait any more"))
    told = f"; {unable} have no time limit, or need what cannot be booked" if unable else ""
    return Verdict(tuple(wishes), f"{len(wanted)} jobs qualify, {len(have)} have windows{told}")


def devices_of(job: PendingJob) -> float:
    """Devices of all tasks of a job, of the first alternative of each group; slices count 1."""
    return sum(group.count * _devices(group) for group in job.request.groups)


def _is_large(kind: LargeJobRule, job: PendingJob) -> bool:
    below = (job.queue == q or job.queue.startswith(f"{q}.") for q in kind.queues)
    if job.request.reservation or (kind.queues and not any(below)):
        return False
    large = bool(kind.devices_above) and devices_of(job) > kind.devices_above
    return large or (kind.guaranteed and job.guaranteed)


def _devices(group: GroupRequest) -> float:
    device = group.shapes[0].device
    if device is None:
        return 0.0
    return device.count * (device.blocks / BLOCKS_PER_DEVICE if device.blocks else 1.0)


def _why(kind: LargeJobRule, job: PendingJob) -> str:
    devices = devices_of(job)
    if kind.devices_above and devices > kind.devices_above:
        return f"job {job.id} wants {devices:g} devices, more than {kind.devices_above:,}"
    return f"the deadline of job {job.id} is guaranteed"


def _spec(name: str, job: PendingJob, *, now: float) -> ReservationSpec | None:
    amounts = tuple(_amounts(job))
    limit = job.request.terms.time_limit_s
    if not limit or len(amounts) < len(job.request.groups):
        return None
    length = limit + SLACK_S
    earliest = max(now, job.begin_at)
    latest = job.deadline_at + SLACK_S if job.deadline_at else earliest + length + AHEAD_S
    # Nobody is stopped for a job that a rule speaks for, as long as it can wait.
    span = Flexible(earliest, max(latest, earliest + length), Preference.CHEAPEST)
    when = When(length, flexible=span)
    return ReservationSpec(
        name,
        What(amounts=amounts),
        when,
        Owners(labels=(job_owner(job.id),)),
        on_end=OnEnd.CONTINUE,
        release_after_idle_s=IDLE_S,
    )


def _amounts(job: PendingJob) -> Iterator[Amount]:
    # Labels of nodes and topology cannot be booked; such a job is better served by its queue.
    for group in job.request.groups:
        shape = group.shapes[0]
        topology = job.request.topology
        if shape.labels or shape.labels_not or (topology is not None and topology.required):
            return
        yield Amount(shape.device, group.count, shape.cpu_milli, shape.memory_bytes)


def _is_unused(at: Occurrence, *, now: float) -> bool:
    return not at.started_at and at.start_at > now
