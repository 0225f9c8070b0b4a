"""How far jobs are that run on what was rented for them.

A job that was interrupted is queued with all of its work again; what it has done counts here, less
what the interruption cost it, so that its slack is what it is.
"""

from collections.abc import Mapping
from dataclasses import replace

from atoll.core.engine.burst.broker.ground import NO_USE, Ground, Use
from atoll.core.engine.burst.broker.job_rents import JobRents
from atoll.core.engine.burst.broker.memory import Course
from atoll.core.model.burst import Instance, InstanceState
from atoll.core.model.ids import JobId

Courses = Mapping[JobId, Course]
LEAST_KEPT = 0.1
"""Work goes on elsewhere only where moving it loses no more than this part of what is left."""


def with_courses(ground: Ground) -> Ground:
    """The ground with courses as of now, and with the work that is left of wants and of uses."""
    waiting = {want.job for want in ground.wants}
    rented = {job: each for each in ground.instances for job in each.jobs}
    courses = {
        job: _followed(ground, course, waits=job in waiting, instance=rented.get(job))
        for job, course in ground.memory.courses.items()
        if job in waiting or job in rented
    }
    wants = tuple(
        replace(want, work_s=min(want.work_s, courses[want.job].left_s))
        if want.job in courses
        else want
        for want in ground.wants
    )
    uses = {each.id: _use(ground, each, courses) for each in ground.instances}
    memory = replace(ground.memory, courses=courses)
    return replace(ground, wants=wants, uses={**ground.uses, **uses}, memory=memory)


def courses_after(ground: Ground, found: JobRents) -> Courses:
    """With those of jobs that something is rented for now."""
    courses = dict(ground.memory.courses)
    for load in found.loads:
        for want in found.wants_of(load):
            if want.preemptible or want.deadline_at:
                courses[want.job] = Course(want.deadline_at, want.work_s, want.overhead_s)
    return courses


def _followed(ground: Ground, course: Course, *, waits: bool, instance: Instance | None) -> Course:
    """Runs on, begins to run, or is queued again."""
    if waits:
        lost_s = course.overhead_s if course.runs_at else 0.0
        return course._replace(left_s=course.left_s + lost_s, runs_at=0.0)
    if instance is None or not runs_on(ground, instance):
        return course
    done_s = max(0.0, ground.now - course.runs_at) if course.runs_at else 0.0
    return course._replace(left_s=max(0.0, course.left_s - done_s), runs_at=ground.now)


def _use(ground: Ground, instance: Instance, courses: Courses) -> Use:
    """With how long it goes on where nobody has said it, if stopping loses little of that."""
    use = ground.uses.get(instance.id, NO_USE)
    known = [courses[job] for job in instance.jobs if job in courses and courses[job].runs_at]
    if use.left_s or not known or len(known) < use.live or not runs_on(ground, instance):
        return use
    left_s = max(course.left_s for course in known)
    lost_s = max(course.overhead_s for course in known)
    if lost_s > LEAST_KEPT * left_s or any(course.deadline_at for course in known):
        return use
    return replace(use, left_s=left_s, devices=use.devices or instance.offer.units)


def runs_on(ground: Ground, instance: Instance) -> bool:
    """Whether anything does."""
    ready = instance.state in {InstanceState.READY, InstanceState.DRAINING}
    return ready and ground.uses.get(instance.id, NO_USE).live > 0
