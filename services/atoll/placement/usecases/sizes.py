"""Elastic attempts as the leader follows them: what they have done, and which change is open."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from atoll.core.engine.deadlines.desk import SizeFacts
from atoll.core.model.ids import AttemptId
from atoll.core.model.job import Attempt
from atoll.core.model.lifecycle import AttemptState
from atoll.core.model.plan import Resize, RunTerms, TaskPlacement


@dataclass(slots=True)
class _Sized:
    attempt: Attempt
    grace_s: float
    opened_at: float = 0.0
    """Monotonic; since when the change of its generation has been open."""
    wanted: frozenset[int] | None = None
    """Ranks that are to run by the open change; None: an earlier leader decided that."""

    @property
    def open(self) -> bool:
        return self.attempt.resized != self.attempt.generation


@dataclass(slots=True)
class SizeBook:
    """Live attempts that may change their size, as their rows have them."""

    _sized: dict[AttemptId, _Sized] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._sized)

    def note(self, attempt: Attempt, terms: RunTerms, *, now: float) -> None:
        """Take in a row; `now` is monotonic."""
        if terms.elastic is None:
            return
        known = self._sized.get(attempt.id)
        if known is None:
            self._sized[attempt.id] = _Sized(attempt, terms.grace_s, opened_at=now)
            return
        if attempt.generation > known.attempt.generation:
            known.opened_at, known.wanted = now, None
        known.attempt = attempt

    def decided(self, attempt: Attempt, resize: Resize, *, now: float) -> None:
        """A change of size was committed; `now` is monotonic."""
        known = self._sized.get(attempt.id)
        if known is not None:
            ranks = {task.rank for task in attempt.tasks} - set(resize.drop)
            known.attempt, known.opened_at, known.wanted = attempt, now, frozenset(ranks)

    def forget(self, attempts: Iterable[AttemptId]) -> None:
        """Attempts that ended, or are to stop."""
        for attempt in attempts:
            self._sized.pop(attempt, None)

    def facts(self) -> dict[AttemptId, SizeFacts]:
        """Of those that have changed their size."""
        return {
            number: SizeFacts(a.generation, a.changed_at, a.done)
            for number, a in self._attempts()
            if a.generation
        }

    def ready(self) -> frozenset[AttemptId]:
        """Those that run and have answered their last change."""
        return frozenset(
            number
            for number, sized in self._sized.items()
            if sized.attempt.state is AttemptState.RUNNING and not sized.open
        )

    def ending(self) -> list[TaskPlacement]:
        """Tasks that were told to end and hold what they hold until they have."""
        return [
            task
            for sized in self._sized.values()
            if sized.open and sized.wanted is not None
            for task in sized.attempt.tasks
            if task.rank not in sized.wanted
        ]

    def overdue(self, now: float, *, bind_timeout_s: float) -> Sequence[Resize]:
        """Changes that nobody answered in time, to be given anew; `now` is monotonic.

        An agent that lost its journal knows nothing of them. What an earlier leader wanted
        is not known: its attempts go on with all that is held for them.
        """
        found = [
            sized
            for sized in self._sized.values()
            if sized.open and now >= sized.opened_at + patience_s(sized.grace_s, bind_timeout_s)
        ]
        return [_again(sized) for sized in found]

    def _attempts(self) -> Iterator[tuple[AttemptId, Attempt]]:
        return ((number, sized.attempt) for number, sized in self._sized.items())


def patience_s(grace_s: float, bind_timeout_s: float) -> float:
    """How long an agent may take to answer a change of size."""
    return max(2 * bind_timeout_s, grace_s + bind_timeout_s)


def _again(sized: _Sized) -> Resize:
    attempt = sized.attempt
    ranks = {task.rank for task in attempt.tasks}
    drop = ranks - sized.wanted if sized.wanted is not None else set()
    return Resize(attempt.id, attempt.cluster, attempt.generation + 1, drop=tuple(sorted(drop)))
