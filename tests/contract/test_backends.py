"""What every backend in the registry keeps, whatever runs the work."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.agent.backends.registry import BACKENDS
from atoll.core.model.errors import NotFound
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import DeviceGrant
from atoll.core.model.spec import OnLost
from atoll.ports.backend import LeaseOver, Refused, StopOrder
from tests.contract.backends import SETTINGS, TERMINAL, Opened, attempt, job, order

STARTED, FINISHED, STOPPED = AttemptEvent.STARTED, AttemptEvent.FINISHED, AttemptEvent.STOPPED


@pytest.fixture(params=sorted(BACKENDS))
async def unopened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    made = Opened(SETTINGS[request.param](tmp_path))
    yield made
    await made.end_all()
    await made.close()


@pytest.fixture
async def opened(unopened: Opened) -> Opened:
    await unopened.open()
    return unopened


def test_every_backend_is_under_contract() -> None:
    assert SETTINGS.keys() == BACKENDS.keys()


async def test_inventory_names_each_node_once(opened: Opened) -> None:
    nodes = opened.backend.inventory()
    assert [node.name for node in nodes] == ["n0"]
    assert [device.index for device in nodes[0].devices] == [0, 1]
    assert all(node.up and node.cpu_milli > 0 and node.memory_bytes > 0 for node in nodes)
    assert ("cluster", "c1") in nodes[0].labels


@pytest.mark.parametrize("code", [0, 3])
async def test_a_run_starts_and_finishes_with_its_exit_code(opened: Opened, code: int) -> None:
    assert await opened.backend.check(order(1)) is None
    await opened.backend.start(order(1, job(0.1, code)))
    end = await opened.end(attempt(1))
    assert (end.event, end.exit_code) == (FINISHED, code)
    assert opened.of(attempt(1)) == [STARTED, FINISHED]


async def test_starting_twice_runs_once(opened: Opened) -> None:
    await opened.backend.start(order(1, job(0.5)))
    await opened.backend.start(order(1, job(0.5)))
    await opened.end(attempt(1))
    await opened.backend.start(order(1, job(0.5)))
    await opened.backend.start(order(2))
    await opened.end(attempt(2))
    assert opened.of(attempt(1)) == [STARTED, FINISHED]


async def test_a_run_that_is_stopped_ends_once(opened: Opened) -> None:
    await opened.backend.start(order(1, job(60)))
    opened.backend.stop(StopOrder(attempt(1)))
    opened.backend.stop(StopOrder(attempt(1)))
    end = await opened.end(attempt(1))
    assert (end.event, end.reason) == (STOPPED, None)
    opened.backend.stop(StopOrder(attempt(1)))
    await opened.backend.start(order(2))
    await opened.end(attempt(2))
    assert opened.of(attempt(1)) == [STARTED, STOPPED]


async def test_what_was_stopped_before_it_started_never_starts(opened: Opened) -> None:
    opened.backend.stop(StopOrder(attempt(1)))
    assert (await opened.end(attempt(1))).event is STOPPED
    await opened.backend.start(order(1))
    await opened.backend.start(order(2))
    await opened.end(attempt(2))
    assert opened.of(attempt(1)) == [STOPPED]


async def test_a_stop_after_the_end_says_nothing_new(opened: Opened) -> None:
    await opened.backend.start(order(1))
    await opened.end(attempt(1))
    opened.backend.stop(StopOrder(attempt(1)))
    await opened.backend.start(order(2))
    await opened.end(attempt(2))
    assert [event for event in opened.of(attempt(1)) if event in TERMINAL] == [FINISHED]


async def test_a_stop_after_the_end_is_forgotten_is_answered(opened: Opened) -> None:
    await opened.backend.start(order(1))
    await opened.end(attempt(1))
    opened.backend.forget(attempt(1))
    opened.events.clear()
    opened.backend.stop(StopOrder(attempt(1)))
    assert (await opened.end(attempt(1))).event is STOPPED


async def test_an_absent_node_is_refused(opened: Opened) -> None:
    refusal = await opened.backend.check(order(1, node="elsewhere"))
    assert refusal is not None
    assert refusal.reason is ReasonCode.NODE_ABSENT
    assert refusal.suspects == (1,)


async def test_an_absent_device_is_refused(opened: Opened) -> None:
    refusal = await opened.backend.check(order(1, devices=[DeviceGrant(7, 100)]))
    assert refusal is not None
    assert refusal.reason is ReasonCode.DEVICE_ABSENT


async def test_more_cpu_than_the_node_has_is_refused(opened: Opened) -> None:
    with pytest.raises(Refused) as refused:
        await opened.backend.start(order(1, cpu_milli=10_000_000))
    assert refused.value.refusal.reason is ReasonCode.CAPACITY_TAKEN
    assert opened.of(attempt(1)) == []


async def test_a_share_has_one_owner_until_its_run_ends(opened: Opened) -> None:
    whole, half = [DeviceGrant(0, 100)], [DeviceGrant(0, 50)]
    await opened.backend.start(order(1, job(60), devices=whole))
    refusal = await opened.backend.check(order(2, devices=half))
    assert refusal is not None
    assert refusal.reason is ReasonCode.CAPACITY_TAKEN
    opened.backend.stop(StopOrder(attempt(1)))
    await opened.end(attempt(1))
    await opened.backend.start(order(3, job(60), devices=half))
    assert await opened.backend.check(order(4, devices=half)) is None
    opened.backend.stop(StopOrder(attempt(3)))


async def test_the_members_of_a_gang_run_together(opened: Opened) -> None:
    await opened.backend.start(order(1, job(0.2), tasks=2))
    assert (await opened.end(attempt(1))).exit_code == 0
    assert opened.backend.log_ranks(attempt(1)) == (0, 1)
    assert opened.of(attempt(1)) == [STARTED, FINISHED]


async def test_the_time_limit_ends_a_run(opened: Opened) -> None:
    await opened.backend.start(order(1, job(60, time_limit_s=0.3)))
    end = await opened.end(attempt(1))
    assert (end.event, end.reason) == (FINISHED, ReasonCode.TIME_LIMIT)


async def test_output_is_read_from_any_offset(opened: Opened) -> None:
    await opened.backend.start(order(1))
    await opened.end(attempt(1))
    whole = await opened.backend.read_log(attempt(1), 0, offset=0, limit=1000)
    assert whole.ended
    assert whole.size == len(whole.data) > 4
    part = await opened.backend.read_log(attempt(1), 0, offset=3, limit=2)
    assert (part.offset, part.data) == (3, whole.data[3:5])
    beyond = await opened.backend.read_log(attempt(1), 0, offset=10_000, limit=10)
    assert (beyond.offset, beyond.data) == (whole.size, b"")
    opened.backend.forget(attempt(1))
    again = await opened.backend.read_log(attempt(1), 0, offset=0, limit=1000)
    assert again.data == whole.data


async def test_output_of_the_unknown_is_not_found(opened: Opened) -> None:
    with pytest.raises(NotFound):
        opened.backend.log_ranks(attempt(9))
    with pytest.raises(NotFound):
        await opened.backend.read_log(attempt(9), 0, offset=0, limit=10)


async def test_runs_outlive_the_agent_and_are_found_again(opened: Opened) -> None:
    await opened.backend.start(order(1))
    await opened.end(attempt(1))
    await opened.backend.start(order(2, job(max(1.5, 6 * await opened.pace_s()))))
    await opened.backend.start(order(3, job(60)))
    await opened.until(attempt(3), STARTED)
    found = {event.attempt: event for event in await opened.again()}
    assert (found[attempt(1)].event, found[attempt(1)].exit_code) == (FINISHED, 0)
    assert found[attempt(2)].event is STARTED
    opened.backend.stop(StopOrder(attempt(3)))
    assert (await opened.end(attempt(3))).event is STOPPED
    assert (await opened.end(attempt(2))).exit_code == 0
    await opened.backend.start(order(2))
    await opened.backend.start(order(4))
    await opened.end(attempt(4))
    assert opened.of(attempt(1)) == []
    assert opened.of(attempt(2)) == [FINISHED]


async def test_without_a_lease_a_guarded_run_does_not_begin(unopened: Opened) -> None:
    await unopened.open(lease_s=0)
    assert unopened.backend.capabilities.can_guard
    with pytest.raises(LeaseOver):
        await unopened.backend.start(order(1, job(on_lost=OnLost.REQUEUE)))
    await unopened.backend.start(order(2, job(on_lost=OnLost.HOLD)))
    await unopened.lease(60)
    await unopened.backend.start(order(1, job(on_lost=OnLost.REQUEUE)))
    assert (await unopened.end(attempt(1))).event is FINISHED


async def test_the_guard_stops_guarded_runs_when_the_lease_is_over(unopened: Opened) -> None:
    await unopened.open(lease_s=0)
    lease_s = await unopened.short_lease()
    await unopened.backend.start(order(1, job(60, on_lost=OnLost.REQUEUE)))
    await unopened.backend.start(order(2, job(1.5 * lease_s, on_lost=OnLost.HOLD)))
    end = await unopened.end(attempt(1))
    assert (end.event, end.reason) == (STOPPED, ReasonCode.STOPPED_BY_GUARD)
    assert (await unopened.end(attempt(2))).event is FINISHED


async def test_a_lease_that_is_renewed_keeps_guarded_runs_alive(unopened: Opened) -> None:
    await unopened.open(lease_s=0)
    lease_s = await unopened.short_lease()
    await unopened.backend.start(order(1, job(1.5 * lease_s, on_lost=OnLost.REQUEUE)))
    await unopened.lease(600)
    assert (await unopened.end(attempt(1))).event is FINISHED
