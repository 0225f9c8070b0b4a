"""An agent in its sessions: order, prefix, lease, reports, take-over, the way out."""

import asyncio
import threading

import pytest
from prometheus_client import REGISTRY

from atoll.agent import grouplog, reports
from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.lifecycle import AttemptEvent
from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import Running
from tests.support.waiting import eventually

STARTED, FINISHED, STOPPED = AttemptEvent.STARTED, AttemptEvent.FINISHED, AttemptEvent.STOPPED


async def beats(dispatch: FakeDispatch, count: int = 3) -> None:
    """Let some heartbeats pass."""
    seen = len(dispatch.heartbeats)
    await dispatch.until(lambda: len(dispatch.heartbeats) >= seen + count)


async def test_an_attempt_is_started_reported_and_forgotten(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(exit_code=3), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STARTED, FINISHED]
    assert dispatch.end_of(attempt(1)).exit_code == 3
    assert dispatch.applied_seq == 1
    assert agent.parts is not None
    memory = agent.parts.journal.memory
    await eventually(lambda: not memory.attempts and not memory.reports)


async def test_a_stop_of_what_is_long_over_is_answered_and_forgotten(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert agent.parts is not None
    memory = agent.parts.journal.memory
    await eventually(lambda: not memory.attempts)
    dispatch.stop_attempt(attempt(1))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1)) == [STARTED, FINISHED, STOPPED])
    await eventually(lambda: not memory.attempts and not memory.reports)


async def test_decisions_that_come_again_start_nothing_again(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    for number in range(1, 6):
        dispatch.start_attempt(attempt(number), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(*map(attempt, range(1, 6))))
    assert dispatch.stream is not None
    for _ in range(3):
        dispatch.stream.next_number = 1
        dispatch.push()
    dispatch.start_attempt(attempt(6), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(6)))
    assert [entry["attempt"] for entry in agent.ledger("start")] == list(map(attempt, range(1, 7)))


def connected() -> bool:
    """Whether the agent has a session, by its own account."""
    return REGISTRY.get_sample_value("atoll_agent_session_connected") == 1


async def test_a_session_that_ends_while_the_disk_writes_loses_no_start(
    dispatch: FakeDispatch, agent: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, write = threading.Event(), grouplog.write_durably

    def write_when_free(file: int, pending: list[bytes]) -> None:
        disk.wait(20)
        write(file, pending)

    monkeypatch.setattr(grouplog, "write_durably", write_when_free)
    disk.set()
    await agent.start()
    await beats(dispatch)
    disk.clear()
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.push()
    parts = agent.parts
    assert parts is not None
    await eventually(lambda: parts.applied == 1)  # in memory, not on the disk yet
    dispatch.drop()
    await eventually(lambda: not connected())
    assert len(dispatch.hellos) == 1
    disk.set()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STARTED, FINISHED]
    assert dispatch.hellos[1].applied_seq == 1


async def test_a_gap_ends_the_session_and_nothing_after_it_is_applied(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await beats(dispatch, 1)
    dispatch.hold_back = {2}
    for number in (1, 2, 3):
        dispatch.start_attempt(attempt(number), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: len(dispatch.hellos) >= 3)
    assert dispatch.hellos[-1].applied_seq <= 1
    assert not dispatch.ended(attempt(3))
    dispatch.hold_back = set()
    await dispatch.until(lambda: dispatch.ended(*map(attempt, (1, 2, 3))))
    assert dispatch.applied_seq == 3


async def test_what_an_old_session_says_is_dropped(dispatch: FakeDispatch, agent: Running) -> None:
    await agent.start()
    await beats(dispatch, 1)
    number = dispatch.start_attempt(attempt(1), job(), on(0))
    batch = agent_pb2.DecisionBatch(decisions=dispatch.decisions[number - 1 :])
    dispatch.send(epoch=0, decisions=batch)
    await beats(dispatch, 2)
    assert dispatch.heartbeats[-1].applied_seq == 0
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))


async def test_a_void_decision_only_moves_the_prefix(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.void(attempt(1))
    dispatch.push()
    await dispatch.until(lambda: dispatch.applied_seq == 1)
    assert dispatch.reports == []


async def test_a_stop_of_an_unknown_attempt_keeps_a_late_start_from_running(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.take_reports = dispatch.acknowledge = False
    dispatch.stop_attempt(attempt(1))
    dispatch.push()
    await dispatch.until(lambda: dispatch.applied_seq == 1)
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.applied_seq == 2)
    dispatch.take_reports = dispatch.acknowledge = True
    dispatch.drop()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    await beats(dispatch)
    assert dispatch.events(attempt(1)) == [STOPPED]
    assert agent.ledger("start") == []


async def test_nothing_starts_before_the_prefix_reaches_what_was_decided(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.stop_attempt(attempt(1))
    dispatch.hold_back = {2}
    await agent.start()
    await dispatch.until(lambda: dispatch.applied_seq == 1)
    await beats(dispatch)
    assert dispatch.reports == []
    dispatch.hold_back = set()
    dispatch.drop()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STOPPED]
    assert agent.ledger("start") == []


async def test_decisions_that_come_slowly_are_waited_for(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await beats(dispatch)
    for number in range(1, 21):
        dispatch.void(attempt(number))
    for decision in dispatch.decisions:
        dispatch.send(decisions=agent_pb2.DecisionBatch(decisions=[decision]))
        await beats(dispatch, 1)
    await dispatch.until(lambda: dispatch.applied_seq == 20)
    assert len(dispatch.hellos) == 1


async def test_nothing_starts_without_an_answered_heartbeat(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.answer_heartbeats = False
    await agent.start()
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.applied_seq == 1)
    await beats(dispatch)
    assert dispatch.reports == []
    dispatch.answer_heartbeats = True
    await dispatch.until(lambda: dispatch.ended(attempt(1)))


async def test_reports_come_again_until_they_are_acknowledged(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.take_reports = dispatch.acknowledge = False
    await agent.start()
    for number in range(1, 11):
        dispatch.start_attempt(attempt(number), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.applied_seq == 10)
    await beats(dispatch)
    dispatch.drop()
    await dispatch.until(lambda: len(dispatch.hellos) == 2)
    dispatch.take_reports = dispatch.acknowledge = True
    dispatch.drop()
    await dispatch.until(lambda: dispatch.ended(*map(attempt, range(1, 11))))
    assert [report.number for report in dispatch.reports] == list(range(1, 21))


async def test_a_run_that_dispatch_says_is_not_live_is_stopped(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.dead = {attempt(1)}
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STARTED, STOPPED]


async def test_the_truth_is_asked_for_again_when_its_answer_was_lost(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.acknowledge = False
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    dispatch.dead = {attempt(1)}
    dispatch.acknowledge = True
    dispatch.drop()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STARTED, STOPPED]


async def test_a_silent_reader_gets_no_more_work_done(
    dispatch: FakeDispatch, agent: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MOST_UNACKNOWLEDGED", 10)
    dispatch.take_reports = dispatch.acknowledge = False
    await agent.start()
    await dispatch.until(lambda: dispatch.stream is not None)
    for number in range(1, 101):
        dispatch.start_attempt(attempt(number), job(), on(0))
        dispatch.push()
        await dispatch.until(lambda: bool(dispatch.heartbeats))
        await asyncio.sleep(0.005)
    await beats(dispatch, 10)
    assert dispatch.applied_seq < 100
    dispatch.take_reports = dispatch.acknowledge = True
    dispatch.drop()
    await dispatch.until(lambda: dispatch.ended(*map(attempt, range(1, 101))))


async def test_a_decision_of_an_unknown_kind_waits_for_a_newer_agent(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await beats(dispatch, 1)
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.void(attempt(2))
    dispatch.decisions[1].kind = 77  # type: ignore[assignment]
    dispatch.start_attempt(attempt(3), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    await beats(dispatch)
    assert dispatch.heartbeats[-1].applied_seq == 1
    assert len(dispatch.hellos) == 1
