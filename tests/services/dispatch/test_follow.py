"""What the store is asked for when Redis falls short, and what its answers mean."""

import pytest

from atoll.adapters.memory.clock import ManualClock
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import ClusterName
from atoll.core.model.messages import Decision
from atoll.dispatch.telemetry import Telemetry
from atoll.dispatch.usecases.follow import Repairer, look_for_missing
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.observer import RepairCause
from atoll.dispatch.usecases.session import Session
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.store.common import StoreUnavailable
from tests.services.dispatch.stubs import session
from tests.services.dispatch.values import decision


class Rows:
    """The decisions' rows, from `first` to `last`."""

    def __init__(self, first: int, last: int) -> None:
        self.numbers = range(first, last + 1)
        self.asked: list[tuple[int, int]] = []
        self.away = False

    async def decisions_after(
        self, cluster: ClusterName, number: int, *, limit: int
    ) -> list[Decision]:
        if self.away:
            raise StoreUnavailable("away", code=ErrorCode.UNAVAILABLE)
        self.asked.append((number, limit))
        following = range(number + 1, number + 1 + limit)
        return [decision(n) for n in following if n in self.numbers and number + 1 in self.numbers]


class Desk:
    """A repairer without Redis over one session."""

    def __init__(self, rows: Rows, one: Session, *, batch: int = 4) -> None:
        self.rows = rows
        self.table = SessionTable(most=10)
        self.table.enter(one)
        self.repairer = Repairer(
            rows,  # type: ignore[arg-type] # it asks for nothing else
            None,
            self.table,
            observer=Telemetry(ManualClock()),
            limits=Limits(repair_batch=batch),
        )

    async def repair(self) -> int:
        """Repair until nothing is wanted; how often that was done."""
        done = 0
        while (wanted := self.table.next_repair()) is not None:
            await self.repairer.repair(wanted)
            done += 1
        return done


async def test_much_is_read_in_batches_and_no_further_than_the_window() -> None:
    one = session(window=10)
    desk = Desk(Rows(1, 100), one)
    desk.table.want_repair(one, RepairCause.OPEN)
    await desk.repair()
    assert desk.rows.asked == [(0, 4), (4, 4), (8, 2)]
    assert [d.number for d in one.lane.peek(100)] == list(range(1, 11))
    assert not one.repairing


async def test_a_store_that_is_away_is_asked_again() -> None:
    one = session()
    desk = Desk(Rows(1, 3), one)
    desk.rows.away = True
    desk.table.want_repair(one, RepairCause.GAP, upto=3)
    with pytest.raises(StoreUnavailable):
        await desk.repair()
    assert one.repairing, "Redis would show the same gap again at once"
    desk.rows.away = False
    await desk.repair()
    assert (one.lane.read, one.repairing) == (3, False)


async def test_decisions_that_are_no_longer_kept_end_the_session() -> None:
    one = session(start=2)
    one.lane.head = 9
    desk = Desk(Rows(6, 9), one)
    desk.table.want_repair(one, RepairCause.OPEN)
    await desk.repair()
    with pytest.raises(FailedPrecondition, match="decision 3 "):
        await one.outbox.next()


async def test_nothing_is_asked_for_a_session_that_lacks_nothing() -> None:
    one = session(start=2)
    desk = Desk(Rows(1, 2), one)
    for _ in range(3):
        look_for_missing(desk.table, None)
    assert await desk.repair() == 0


async def test_a_silent_redis_asks_for_every_session_but_a_full_one() -> None:
    one, full = session("a"), session("b", window=0)
    desk = Desk(Rows(1, 2), one)
    desk.table.enter(full)
    look_for_missing(desk.table, RepairCause.SILENT)
    assert await desk.repair() == 1
    assert one.lane.read == 2
