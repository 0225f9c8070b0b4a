"""For whom room is made, and who is stopped for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from atoll.core.model.ids import JobId
from atoll.core.model.plan import Eviction, Nomination
from atoll.core.state.holds import Hold


@dataclass(frozen=True, slots=True)
class Blocked:
    """A class that found no place, and its next job's index in the snapshot's queue."""

    group: int
    job: int


@dataclass(slots=True)
class Preempted:
    """Who is stopped for whom."""

    evictions: list[Eviction] = field(default_factory=list)
    nominations: list[Nomination] = field(default_factory=list)
    released: list[JobId] = field(default_factory=list)
    """Jobs whose holds others inherit."""
    again: set[int] = field(default_factory=set)
    """Classes that are worth another try in the next cycle."""

    def beside(
        self, evictions: Sequence[Eviction], holds: Sequence[Hold], groups: Iterable[int]
    ) -> "Preempted":
        """The same with what was stopped before, what is held then, and for which classes."""
        held = [*(hold.nomination for hold in holds), *self.nominations]
        again = self.again | set(groups)
        return Preempted([*evictions, *self.evictions], held, self.released, again)
