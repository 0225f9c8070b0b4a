"""What is seen of a simulation while it goes on: its story, its record, and its violations."""

import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from atoll.core.model.ids import JobId
from atoll.ports.clock import Clock

REMEMBERED: Final = 20_000
TOLD: Final = 40


class InvariantBroken(Exception):
    """Something happened that must never happen; the message has seed, time and story."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that happened."""

    at: float
    """Seconds from the start."""
    text: str
    job: JobId | None = None

    def __str__(self) -> str:
        return f"{self.at:14.3f}  {self.text}"


@dataclass(slots=True)
class Story:
    """What happened lately; faults, and moves of jobs."""

    clock: Clock
    origin: float
    """Monotonic time of the simulation's beginning."""
    notes: deque[Note] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def now(self) -> float:
        """Seconds from the start."""
        return self.clock.monotonic() - self.origin

    def tell(self, text: str, job: JobId | None = None) -> None:
        """Add a note."""
        self.notes.append(Note(self.now, text, job))

    def about(self, job: JobId | None) -> list[Note]:
        """The last notes of a job and of what is no job's."""
        chosen = [note for note in self.notes if note.job is None or note.job == job]
        return chosen[-TOLD:]


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold."""

    invariant: str
    what: str
    at: float
    job: JobId | None
    story: tuple[Note, ...]


@dataclass(slots=True)
class Court:
    """Takes violations; the first ends the simulation."""

    story: Story
    on_first: Callable[[], None]
    first: Violation | None = None

    def accuse(self, invariant: str, what: str, job: JobId | None = None) -> None:
        """An invariant did not hold."""
        if self.first is None:
            notes = tuple(self.story.about(job))
            self.first = Violation(invariant, what, self.story.now, job, notes)
            self.on_first()

    def require(
        self, holds: object, invariant: str, *what: object, job: JobId | None = None
    ) -> None:
        """Accuse unless it holds."""
        if not holds:
            self.accuse(invariant, " ".join(map(str, what)), job)


def mishap(what: str, error: BaseException) -> str:
    """What failed, and where: the innermost error, and the line that raised it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{what}: {error!r}{where}"
