"""What budgets leave: along the whole chain of a queue, with what is planned counted at once."""

from collections.abc import Mapping

from atoll.core.engine.burst.broker.ground import Room
from atoll.core.engine.choice.worth import dollars
from atoll.core.model.burst import Budget, chain_of
from atoll.core.model.ids import QueueName

Rooms = Mapping[QueueName | None, Room]


def room_of(budget: Budget, *, rate: int, month: int, end_s: float) -> Room:
    """What is left; `rate` an hour is bound now, `month` was spent since the first of the month."""
    ahead = round(rate * end_s / 3600)
    return Room(
        None if budget.per_hour is None else budget.per_hour - rate,
        None if budget.per_month is None else budget.per_month - month - ahead,
    )


class Purse:
    """Budgets while plans are made: what was planned is not there for what comes next."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = dict(rooms)

    def short(self, queue: QueueName | None, *, rate: int, ahead: int) -> str:
        """Which budget has too little left, in words; empty: there is enough."""
        for each in chain_of(queue):
            room = self._rooms.get(each, Room())
            whose = f"queue {each}" if each else "all queues"
            if room.rate_left is not None and rate > room.rate_left:
                left = dollars(max(0, room.rate_left))
                return f"of the budget of {whose} {left}/h is left, {dollars(rate)}/h is asked for"
            if room.month_left is not None and ahead > room.month_left:
                left = dollars(max(0, room.month_left))
                return f"of {whose}'s month {left} is left, {dollars(ahead)} is asked for"
        return ""

    def take(self, queue: QueueName | None, *, rate: int, ahead: int) -> bool:
        """Take it from all along the chain, or from none."""
        if self.short(queue, rate=rate, ahead=ahead):
            return False
        for each in chain_of(queue):
            if each in self._rooms:
                room = self._rooms[each]
                self._rooms[each] = Room(_less(room.rate_left, rate), _less(room.month_left, ahead))
        return True


def _less(left: int | None, taken: int) -> int | None:
    return None if left is None else left - taken
