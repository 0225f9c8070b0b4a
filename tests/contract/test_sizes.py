"""What every backend keeps when a run changes its size."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from atoll.agent.backends.registry import BACKENDS
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.resources import DeviceGrant
from atoll.ports.backend import ResizeOrder, RunEvent, StartOrder, StopOrder
from tests.contract.backends import SETTINGS, Opened, attempt, job, order
from tests.support.waiting import eventually

STARTED, STOPPED, RESIZED = AttemptEvent.STARTED, AttemptEvent.STOPPED, AttemptEvent.RESIZED


@pytest.fixture(params=sorted(BACKENDS))
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    made = Opened(SETTINGS[request.param](tmp_path))
    await made.open()
    yield made
    await made.end_all()
    await made.close()


def sized(number: int, *, tasks: int) -> StartOrder:
    """Job `number` with so many tasks, each on a device of its own."""
    given = order(number, job(600), tasks=tasks)
    placed = tuple(t._replace(devices=(DeviceGrant(t.rank, 100),)) for t in given.tasks)
    return replace(given, tasks=placed)


async def answer(opened: Opened, number: int, generation: int) -> RunEvent:
    """The answer to a change of size, waited for."""

    def found() -> list[RunEvent]:
        told = [e for e in opened.events if e.attempt == attempt(number) and e.event is RESIZED]
        return [event for event in told if event.generation == generation]

    await eventually(lambda: bool(found()))
    return found()[0]


async def test_a_run_grows_and_shrinks(opened: Opened) -> None:
    await opened.backend.start(sized(1, tasks=1))
    await opened.until(attempt(1), STARTED)
    await opened.backend.resize(ResizeOrder(sized(1, tasks=2), 1))
    assert (await answer(opened, 1, 1)).ranks == (0, 1)
    assert opened.backend.log_ranks(attempt(1)) == (0, 1)
    await opened.backend.resize(ResizeOrder(sized(1, tasks=1), 2))
    assert (await answer(opened, 1, 2)).ranks == (0,)
    assert STOPPED not in opened.of(attempt(1))
    # The second device is free again.
    other = replace(order(2), tasks=(order(2).tasks[0]._replace(devices=(DeviceGrant(1, 100),)),))
    assert await opened.backend.check(other) is None


async def test_what_is_taken_is_left_out(opened: Opened) -> None:
    await opened.backend.start(order(2, job(600), devices=[DeviceGrant(1, 100)]))
    await opened.backend.start(sized(1, tasks=1))
    await opened.until(attempt(1), STARTED)
    await opened.until(attempt(2), STARTED)
    await opened.backend.resize(ResizeOrder(sized(1, tasks=2), 1))
    assert (await answer(opened, 1, 1)).ranks == (0,)


async def test_a_repeated_order_is_answered_again_by_another_agent(opened: Opened) -> None:
    await opened.backend.start(sized(1, tasks=1))
    await opened.until(attempt(1), STARTED)
    await opened.backend.resize(ResizeOrder(sized(1, tasks=2), 1))
    await answer(opened, 1, 1)
    assert [event.event for event in await opened.again()] == [STARTED]
    await opened.backend.resize(ResizeOrder(sized(1, tasks=2), 1))
    assert (await answer(opened, 1, 1)).ranks == (0, 1)
    opened.backend.stop(StopOrder(attempt(1)))
    assert (await opened.end(attempt(1))).event is STOPPED


async def test_a_run_that_has_ended_has_no_size(opened: Opened) -> None:
    await opened.backend.start(order(1))
    await opened.end(attempt(1))
    await opened.backend.resize(ResizeOrder(order(1, tasks=2), 1))
    assert RESIZED not in opened.of(attempt(1))
