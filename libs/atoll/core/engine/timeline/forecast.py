"""When every queued job will start, as far as can be told: a point, where, and what it waits for.

What is before a job in the order flows first into the capacity that is expected to
come free where it may go; then there must be room for it whole on nodes and in domains
as they will be. Limits of queues are filled in the same way. A class
of jobs is told by a few of them; what lies between is interpolated.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from atoll.core.engine.masks import Masks
from atoll.core.engine.timeline.basins import CPU_UNIT, volume
from atoll.core.engine.timeline.courses import Course, Reach
from atoll.core.engine.timeline.expected_runs import expected_runs
from atoll.core.engine.timeline.flow_kernels import Flow, flow_through
from atoll.core.engine.timeline.limit_basins import LimitBasin, limit_basins
from atoll.core.engine.timeline.routes import Route, Routes, overlaps
from atoll.core.engine.timeline.turn_order import TurnOrder, turn_order
from atoll.core.model.ids import ClusterName, QueueName
from atoll.core.model.plan import GangRequest, PendingJob
from atoll.core.policies.interfaces import Policies
from atoll.core.state.mig import UNITS_PER_BLOCK
from atoll.core.state.ragged import offsets, spans
from atoll.core.state.survey import Survey

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ClassKey = tuple[QueueName, GangRequest, int]
NOWHERE: Final = -1
_LEAST: Final = 1e-6
"""Of something is needed by every job."""


class Cause(enum.StrEnum):
    """What a job waits for in the end."""

    TURN = "TURN"
    """There is room; it is its turn next."""
    ROOM = "ROOM"
    """Runs have to end before there is room for it whole."""
    AHEAD = "AHEAD"
    """Jobs that are before it have to run first."""
    LIMIT = "LIMIT"
    """Runs of its own queue have to end: a limit is used up."""
    BOOKING = "BOOKING"
    """A booking is in its way until then, or it waits for its own."""


CAUSES: Final = tuple(Cause)


@dataclass(frozen=True, slots=True)
class Point:
    """The forecast for one job if nothing else is submitted."""

    start: float
    """Unix seconds."""
    cluster: ClusterName
    cause: Cause
    ahead_s: float
    """Work before it where it goes: seconds of all that may run there."""
    name: str = ""
    """LIMIT: the queue whose limit it is; BOOKING: the booking."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of all classes that wait for room, as of one moment."""

    as_of: float = 0.0
    clusters: tuple[ClusterName, ...] = ()
    names: tuple[str, ...] = ()
    courses: Mapping[ClassKey, Course] = field(default_factory=dict)
    reaches: tuple[Reach, ...] = ()

    def of(self, pending: PendingJob) -> Point | None:
        """None: it is not known yet, or nobody can tell."""
        course = self._course(pending)
        if course is None:
            return None
        at, start = course.at(pending.id), course.between(course.start, pending.id)
        if not np.isfinite(start):
            return None
        name = int(course.name[at])
        return Point(
            start=start,
            cluster=self.clusters[int(course.cluster[at])],
            cause=CAUSES[int(course.cause[at])],
            ahead_s=float(course.ahead_s[at]),
            name=self.names[name] if name != NOWHERE else "",
        )

    def starts(self, pending: PendingJob) -> dict[ClusterName, float]:
        """When it would start in each cluster that it may go to, in the order of the queue."""
        course, found = self._course(pending), dict[ClusterName, float]()
        if course is None:
            return found
        # Its limits bind it wherever it goes.
        least = course.between(course.start, pending.id)
        for reach in self.reaches:
            starts = reach.of(course)
            if starts is not None:
                start = max(least, course.between(starts, pending.id))
                name = self.clusters[reach.cluster]
                found[name] = min(start, found.get(name, np.inf))
        return {name: start for name, start in found.items() if np.isfinite(start)}

    def turns(self, key: ClassKey, jobs: Ints) -> Floats:
        """(J) grow with the order in which jobs of a class have their turn, among all classes.

        Infinity: it is not known.
        """
        course = self.courses.get(key)
        if course is None:
            return np.full(len(jobs), np.inf)
        return np.interp(jobs, course.job, course.turn)

    def _course(self, pending: PendingJob) -> Course | None:
        return self.courses.get((pending.queue, pending.request, pending.priority))


def forecast(survey: Survey, policies: Policies, *, rng: Generator) -> Forecast:
    """The forecast as of the survey."""
    snapshot = survey.snapshot
    now = snapshot.now
    if not len(snapshot.queue.job):
        return Forecast(now)
    runs = expected_runs(survey, now=now)
    turns = turn_order(survey, policies, runs, now=now, rng=rng)
    routes = Routes(snapshot, runs, Masks(snapshot, policies, now))
    flow = _Flow(survey, turns, routes)
    courses = flow.run()
    clusters = tuple(view.name for view in snapshot.clusters)
    return Forecast(now, clusters, tuple(flow.names), courses, tuple(flow.reaches))


class _Flow:
    """Lets work flow in the order of the turns. J jobs, C classes, G basins."""

    def __init__(self, survey: Survey, turns: TurnOrder, routes: Routes) -> None:
        self.snapshot, self.place = survey.snapshot, survey.place
        self.turns, self.routes = turns, routes
        views = survey.snapshot.queue.classes
        self.views = views
        self.ways = [_one_each(routes.of(view)) for view in views]
        self.limits = limit_basins(survey.snapshot, routes.runs, survey.total)
        self.cpu = np.array([view.need.cpu_milli for view in views], np.float64)
        units = [sum(units for _, units in view.need.devices) for view in views]
        self.blocks = np.array(units, np.float64) / UNITS_PER_BLOCK
        self.length = np.array([view.expected[1] for view in views], np.float64)
        size = len(turns.of)
        self.flow = Flow(turns.jobs, turns.of, survey.place, turns.weight, self.length)
        self.start = np.full(size, np.inf)
        self.cluster = np.full(size, NOWHERE, np.int64)
        self.ahead_s = np.zeros(size)
        self.room = np.full(size, np.inf)
        """When there would be room, if nobody were before."""
        self.names: list[str] = [limit.queue for limit in self.limits]
        self.limit = np.full(size, NOWHERE, np.int64)
        self.booking = np.full(size, NOWHERE, np.int64)
        self.turn = np.empty(size)
        self.turn[turns.jobs] = np.arange(size)
        self.reaches: list[Reach] = []

    def run(self) -> dict[ClassKey, Course]:
        """The courses of all classes."""
        amounts = self._amounts()
        for number, ways in enumerate(self._by_ground()):
            self._drain(number, ways, amounts[:, number])
        for number, limit in enumerate(self.limits):
            self._bound(number, limit)
        cause = self._causes()
        return {
            (view.queue, view.request, view.priority): self._course_of(at, cause)
            for at, view in enumerate(self.views)
        }

    def _amounts(self) -> Floats:
        """(C, G) what one job of a class takes of a basin, on average."""
        grounds, size = self.routes.grounds, len(self.views)
        part = np.zeros((size, len(grounds)))
        volumes = np.array([volume(ground.avail) for ground in grounds])
        stuck = np.zeros(size, np.bool_)
        for limit in self.limits:
            stuck |= limit.reached
        for at, ways in enumerate(self.ways):
            basins = [way.basin for way in ways]
            # A job at its limit lets others pass.
            if basins and not stuck[at]:
                part[at, basins] = _shares(volumes[basins])
        unit = np.array([ground.unit for ground in grounds], np.int64)
        overlap = overlaps(grounds, self.routes.units)
        same = overlap * (unit[:, None] == unit[None, :])
        besides = overlap * ((unit[:, None] != CPU_UNIT) & (unit[None, :] == CPU_UNIT))
        own = np.where(unit[None, :] == CPU_UNIT, self.cpu[:, None], self.blocks[:, None])
        taken: Floats = (part * own) @ same + (part * self.cpu[:, None]) @ besides
        return taken

    def _by_ground(self) -> list[list[tuple[int, Route]]]:
        found: list[list[tuple[int, Route]]] = [[] for _ in self.routes.grounds]
        for at, ways in enumerate(self.ways):
            for way in ways:
                found[way.basin].append((at, way))
        return found

    def _drain(self, number: int, ways: list[tuple[int, Route]], amount: Floats) -> None:
        ground, first = self.routes.grounds[number], self.snapshot.queue.first
        classes = np.array([at for at, _ in ways], np.int64)
        need = np.zeros(len(self.views))
        own = self.cpu if ground.unit == CPU_UNIT else self.blocks
        need[classes] = np.maximum(own[classes], _LEAST)
        turn = self._turns(ground.avail, amount, need)
        jobs = spans(first, classes)
        room = np.repeat([way.first for _, way in ways], np.diff(first)[classes])
        ahead = self._ahead(amount)[jobs]
        # With nobody before it the node that it gets is known, not only the sum.
        start = np.where(ahead > 0, np.maximum(turn[jobs], room), room)
        opens = np.repeat([way.opens for _, way in ways], np.diff(first)[classes])
        booking = np.repeat([self._name(way) for _, way in ways], np.diff(first)[classes])
        booking = np.where(opens > start, booking, NOWHERE)
        start = np.maximum(start, opens)
        self.reaches.append(Reach(ground.cluster, classes, offsets(np.diff(first)[classes]), start))
        better = start < self.start[jobs]
        jobs, room = jobs[better], room[better]
        self.start[jobs], self.room[jobs] = start[better], room
        self.cluster[jobs], self.booking[jobs] = ground.cluster, booking[better]
        self.ahead_s[jobs] = ahead[better] / max(ground.cap, 1.0)

    def _name(self, way: Route) -> int:
        if not way.booking:
            return NOWHERE
        if way.booking not in self.names[len(self.limits) :]:
            self.names.append(way.booking)
        return self.names.index(way.booking, len(self.limits))

    def _turns(self, avail: Floats, amount: Floats, need: Floats) -> Floats:
        """(J) when each has what it needs once its turn comes."""
        turn, done = np.full(len(self.turns.of), np.inf), np.zeros(len(self.views))
        flow_through(self.flow, avail.copy(), amount, need, done, turn)
        return turn + self.snapshot.now

    def _ahead(self, amount: Floats) -> Floats:
        """(J) work before each: amount times seconds."""
        turns = self.turns
        brought = (turns.weight * (amount * self.length)[turns.of])[turns.jobs]
        ahead = np.empty(len(turns.of))
        ahead[turns.jobs] = np.cumsum(brought) - brought
        return ahead

    def _bound(self, number: int, limit: LimitBasin) -> None:
        need = limit.need * limit.bound
        until = self._turns(limit.avail, need, need)
        later = limit.bound[self.turns.of] & (need[self.turns.of] > 0) & (until > self.start)
        self.start[later], self.limit[later] = until[later], number

    def _course_of(self, at: int, cause: NDArray[np.int8]) -> Course:
        first, end = self.snapshot.queue.first[at : at + 2].tolist()
        place = np.argsort(self.snapshot.queue.job[first:end])
        jobs = first + place
        name = np.where(self.limit != NOWHERE, self.limit, self.booking)
        each = (self.start, self.cluster, cause, self.ahead_s, name, self.turn)
        job = self.snapshot.queue.job[jobs]
        return Course(at, job, place, *(column[jobs] for column in each))

    def _causes(self) -> NDArray[np.int8]:
        alone = self.room >= self.start
        causes = np.where(alone, CAUSES.index(Cause.ROOM), CAUSES.index(Cause.AHEAD))
        causes[self.start <= self.snapshot.now] = CAUSES.index(Cause.TURN)
        causes[self.booking != NOWHERE] = CAUSES.index(Cause.BOOKING)
        causes[self.limit != NOWHERE] = CAUSES.index(Cause.LIMIT)
        return causes.astype(np.int8)


def _one_each(ways: list[Route]) -> list[Route]:
    """Of the ways into one basin the one with room first."""
    best: dict[int, Route] = {}
    for way in ways:
        if way.basin not in best or way.first < best[way.basin].first:
            best[way.basin] = way
    return [*best.values()]


def _shares(volumes: Floats) -> Floats:
    whole = float(volumes.sum())
    return volumes / whole if whole > 0 else np.full(len(volumes), 1 / len(volumes))
