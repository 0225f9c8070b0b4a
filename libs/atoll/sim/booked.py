"""Bookings of a simulation without messages: entered, started and ended as their service does.

What is due, and when, says the reservation service's own rule; the world gets the windows that
the placement leader would be told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from atoll.core.model.booking import OccurrenceId
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE, next_occurrence_state
from atoll.core.model.windows import windows_of
from atoll.core.state.world import World
from atoll.ports.store.bookings import Kept
from atoll.reservation.usecases.due import Due, due, over_at_of

NOTICE_S: Final = 7 * 86_400.0
"""How long before its start a booking is made; longer than any job of a log may run."""


@dataclass(slots=True)
class Booked:
    """All bookings, by the time of their start. Times are unix seconds."""

    kept: Sequence[Kept]
    _made: int = 0
    _live: dict[OccurrenceId, Kept] = field(default_factory=dict)

    def times(self) -> list[float]:
        """When something is to be done: bookings are made, start and end."""
        found: set[float] = set()
        for each in self.kept:
            end = over_at_of(each.reservation.spec, each.occurrence)
            found.update((made_at(each), each.occurrence.start_at, end))
        return sorted(found)

    def step(self, world: World, now: float) -> None:
        """Do what is due."""
        while self._made < len(self.kept) and made_at(self.kept[self._made]) <= now:
            self._enter(world, self.kept[self._made])
            self._made += 1
        for action in due(self._live.values(), now):
            self._act(world, action, now)

    def _enter(self, world: World, kept: Kept) -> None:
        self._live[kept.occurrence.id] = kept
        world.put_windows(windows_of(kept.reservation, kept.occurrence, now=made_at(kept)))

    def _act(self, world: World, action: Due, now: float) -> None:
        kept, event = self._live[action.occurrence], action.event
        state = next_occurrence_state(kept.occurrence.state, event)
        if state is None:
            raise AssertionError(f"a booking that is {kept.occurrence.state} cannot be {event}")
        occurrence = replace(kept.occurrence, state=state, started_at=now)
        if state not in TERMINAL_OCCURRENCE:
            self._live[occurrence.id] = replace(kept, occurrence=occurrence)
            world.put_windows(windows_of(kept.reservation, occurrence, now=now))
        else:
            del self._live[occurrence.id]
            world.drop_windows([occurrence.id])


def made_at(kept: Kept) -> float:
    """When a booking is made."""
    return kept.occurrence.start_at - NOTICE_S
