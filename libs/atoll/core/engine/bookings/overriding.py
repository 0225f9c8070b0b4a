"""What becomes of bookings that give way: other nodes, another time, an earlier end, or none."""

from dataclasses import dataclass, replace

from atoll.core.engine.bookings.answers import Booked, Move
from atoll.core.engine.bookings.diary import Diary, Trial
from atoll.core.engine.bookings.displacing import Beside, Losers
from atoll.core.engine.bookings.fitting import Fit, Fitter, views
from atoll.core.engine.bookings.search import Range, Search
from atoll.core.engine.bookings.wanted import pools_of


@dataclass(frozen=True, slots=True)
class Yielding:
    """Moves bookings out of the way of one called `name`, inside a trial that has it already."""

    diary: Diary
    trial: Trial
    losers: Losers
    """Runs that give way to the moved bookings are added."""
    name: str
    now: float

    def moves(self) -> tuple[Move, ...]:
        """What becomes of every booking among the losers; higher ones choose first."""
        gone = [(self.diary.get(id), at) for id, at in self.losers.bookings.items()]
        self.trial.hide([booked.id for booked, _ in gone])
        gone.sort(key=lambda each: (-each[0].priority, each[0].start, each[0].id))
        return tuple(self._move(booked, at) for booked, at in gone)

    def _move(self, booked: Booked, at: float) -> Move:
        self.diary.chooser.prefer(self.diary.terrain.rows_of(booked.parts))
        if booked.running:
            return self._cut(booked, at)
        moved = None if booked.pinned else self._elsewhere(booked) or self._later(booked)
        if moved is None:
            return _told(replace(booked, parts=()), f"cancelled: {self.name} took its place")
        self.trial.enter(moved)
        shifted = moved.start != booked.start
        return _told(
            moved, f"moved to {'another time' if shifted else 'other nodes'} for {self.name}"
        )

    def _cut(self, booked: Booked, at: float) -> Move:
        if at <= max(self.now, booked.start):
            return _told(replace(booked, parts=()), f"ended for {self.name}")
        cut = replace(booked, end=at)
        self.trial.enter(cut)
        return _told(cut, f"ends early for {self.name}")

    def _elsewhere(self, booked: Booked) -> Booked | None:
        pools = pools_of(self.diary.terrain, booked.what, nobody=booked.owners.nobody)
        span = (booked.start, booked.end)
        fit = Fitter(self.diary.chooser, pools).one(span, views(None))
        return None if fit is None else self._taken(booked, fit, span)

    def _later(self, booked: Booked) -> Booked | None:
        wish, length = booked.flexible, booked.end - booked.start
        if wish is None:
            return None
        pools = pools_of(self.diary.terrain, booked.what, nobody=booked.owners.nobody)
        asked = Range(max(self.now, wish.earliest_at), wish.latest_end_at - length, length)
        hit = next(Search(self.diary, pools, views(None), asked).early(), None)
        return None if hit is None else self._taken(booked, hit.fit, (hit.start, hit.end))

    def _taken(self, booked: Booked, fit: Fit, span: tuple[float, float]) -> Booked:
        Beside(self.diary, span, fit.view).losers(fit.parts, booked.owners, self.losers)
        return replace(booked, start=span[0], end=span[1], parts=fit.parts)


def _told(booked: Booked, message: str) -> Move:
    return Move(
        booked.id, booked.reservation, booked.name, booked.start, booked.end, booked.parts, message
    )
