"""Reports wait in bounds, and one session's faults are not the others'."""

import asyncio
from collections.abc import Sequence

import pytest

from atoll.adapters.system import SystemClock, SystemIds
from atoll.core.model.errors import ErrorCode, Unavailable
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.messages import Report
from atoll.dispatch.intake import ReportIntake
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.reports import Reported
from atoll.dispatch.usecases.session import Session
from tests.services.dispatch.stubs import session
from tests.services.dispatch.values import report
from tests.support.waiting import eventually


class Applying:
    """Stands for the use case; `fails` says what it raises for a batch."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[str, int]]] = []
        self.poisoned: Session | None = None
        self.away = asyncio.Event()
        self.tries = 0

    async def apply(self, batch: Sequence[Reported]) -> None:
        self.tries += 1
        if self.away.is_set():
            raise Unavailable("away", code=ErrorCode.UNAVAILABLE)
        if any(each.session is self.poisoned for each in batch):
            raise AssertionError("a bug")
        self.batches.append([(e.session.cluster, r.number) for e in batch for r in e.reports])

    @property
    def applied(self) -> list[tuple[str, int]]:
        return [entry for batch in self.batches for entry in batch]


def reports(first: int, last: int) -> list[Report]:
    return [report(number, AttemptEvent.ACCEPTED) for number in range(first, last + 1)]


def intake_of(applying: Applying, **limits: int) -> ReportIntake:
    return ReportIntake(applying.apply, SystemClock(), SystemIds(), limits=Limits(**limits))


@pytest.fixture
def applying() -> Applying:
    return Applying()


async def test_batches_are_bounded_and_keep_the_order(applying: Applying) -> None:
    intake, one = intake_of(applying, report_batch=10), session()
    running = asyncio.create_task(intake.run())
    await intake.put(one, reports(1, 35))
    await eventually(lambda: len(applying.applied) == 35)
    running.cancel()
    assert [number for _, number in applying.applied] == list(range(1, 36))
    assert max(map(len, applying.batches)) == 10


async def test_a_session_with_too_much_waiting_is_not_read_on(applying: Applying) -> None:
    intake, one, two = intake_of(applying, reports_waiting=5), session("a"), session("b")
    applying.away.set()
    running = asyncio.create_task(intake.run())
    blocked = asyncio.create_task(intake.put(one, reports(1, 6)))
    await intake.put(two, reports(1, 1))
    await eventually(lambda: applying.tries > 2)
    assert not blocked.done()
    applying.away.clear()
    await blocked
    await eventually(lambda: len(applying.applied) == 7)
    running.cancel()
    assert (one.reports_waiting, two.reports_waiting) == (0, 0)


async def test_a_session_whose_reports_cannot_be_applied_ends_alone(applying: Applying) -> None:
    intake, bad, good = intake_of(applying), session("a"), session("b")
    applying.poisoned = bad
    await intake.put(bad, reports(1, 2))
    await intake.put(good, reports(1, 2))
    await intake.put(bad, reports(3, 3))
    running = asyncio.create_task(intake.run())
    await eventually(lambda: not bad.open)
    await eventually(lambda: applying.applied == [("b", 1), ("b", 2)])
    running.cancel()
    assert good.open
    with pytest.raises(Unavailable):
        await bad.outbox.next()
