"""How the jobs of a class get on, told by a few of them; what lies between is interpolated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """The J shown jobs of a class, by id; infinity: never."""

    number: int
    """Of the class in its survey."""
    job: Ints
    place: Ints
    """(J) in the survey's order of the class."""
    start: Floats
    cluster: Ints
    cause: NDArray[np.int8]
    ahead_s: Floats
    name: Ints
    turn: Floats
    """(J) how many of the shown jobs of all classes have their turn before."""

    def at(self, job: int) -> int:
        """The last shown job that is not after another, or the first."""
        return max(0, int(np.searchsorted(self.job, job, side="right")) - 1)

    def between(self, values: Floats, job: int) -> float:
        """What a job has of values (J) that the shown jobs have."""
        at = self.at(job)
        if self.job[at] >= job or at + 1 == len(self.job):
            return float(values[at])
        here, there = values[at : at + 2]
        part = (job - self.job[at]) / (self.job[at + 1] - self.job[at])
        return float(here + part * (there - here)) if np.isfinite(here) else float(here)


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """When the shown jobs of K classes start in one cluster, on nodes of one sort."""

    cluster: int
    classes: Ints
    """(K) numbers, ascending."""
    first: Ints
    """(K + 1) offsets into `start`."""
    start: Floats
    """By class, in the survey's order."""

    def of(self, course: Course) -> Floats | None:
        """(J) starts of the jobs of a course; None: they cannot go there."""
        at = int(np.searchsorted(self.classes, course.number))
        if at == len(self.classes) or self.classes[at] != course.number:
            return None
        found: Floats = self.start[self.first[at] : self.first[at + 1]][course.place]
        return found
