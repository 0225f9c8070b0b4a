"""An agent that begins with an empty journal, while the cluster has runs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.reason import ReasonCode
from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import Running, local, simulated
from tests.support.waiting import eventually

STARTED, FINISHED, STOPPED = AttemptEvent.STARTED, AttemptEvent.FINISHED, AttemptEvent.STOPPED


@pytest.fixture(params=[simulated, local], ids=["simulated", "local"])
async def either(
    request: pytest.FixtureRequest, dispatch: FakeDispatch, tmp_path: Path
) -> AsyncIterator[Running]:
    running = Running(request.param(tmp_path, dispatch))
    yield running
    await running.stop(in_order=False)


async def run_three(dispatch: FakeDispatch, agent: Running) -> None:
    """Jobs 1 and 2 run for long, job 3 has finished unheard; then the journal is lost."""
    dispatch.take_reports = dispatch.acknowledge = False
    await agent.start()
    assert agent.parts is not None
    reports = agent.parts.reports
    dispatch.start_attempt(attempt(1), job(3), on(0))
    dispatch.start_attempt(attempt(2), job(300), on(0))
    dispatch.start_attempt(attempt(3), job(0, 5), on(0))
    dispatch.push()
    await eventually(lambda: reports.last >= 4)
    await agent.stop(in_order=False)
    dispatch.drop()  # what the dead one may still have on its way is not heard
    (agent.settings.data_dir / "journal").unlink()
    dispatch.take_reports = dispatch.acknowledge = True


async def test_live_runs_are_adopted_the_others_stopped_and_the_unknown_given_up(
    dispatch: FakeDispatch, either: Running
) -> None:
    await run_three(dispatch, either)
    dispatch.snapshot = [attempt(1), attempt(3), attempt(4)]
    await either.start()
    await dispatch.until(lambda: dispatch.ended(*map(attempt, (1, 2, 3, 4))))
    assert dispatch.events(attempt(1)) == [STARTED, FINISHED]
    assert dispatch.end_of(attempt(1)).exit_code == 0
    assert dispatch.events(attempt(2)) == [STOPPED]
    assert dispatch.end_of(attempt(3)).exit_code == 5
    assert dispatch.end_of(attempt(4)).event is FINISHED
    assert dispatch.end_of(attempt(4)).reason is ReasonCode.EXIT_UNKNOWN
    assert dispatch.hellos[-1].fresh_journal
    assert dispatch.hellos[-1].agent_instance != dispatch.hellos[0].agent_instance


async def test_a_run_that_was_told_to_stop_stops_under_another_agent_too(
    dispatch: FakeDispatch, either: Running
) -> None:
    await run_three(dispatch, either)
    dispatch.snapshot = [attempt(1), attempt(2), attempt(3)]
    dispatch.stopping = [attempt(2)]
    await either.start()
    await dispatch.until(lambda: dispatch.ended(*map(attempt, (1, 2, 3))))
    assert dispatch.events(attempt(2)) == [STARTED, STOPPED]
    assert dispatch.end_of(attempt(1)).event is FINISHED


async def test_the_next_decision_follows_the_snapshot(
    dispatch: FakeDispatch, either: Running
) -> None:
    await run_three(dispatch, either)
    dispatch.snapshot = [attempt(1)]
    await either.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1), attempt(2)))
    dispatch.start_attempt(attempt(5), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(5)))
    assert dispatch.applied_seq == 4
    await either.stop()
    await either.start()
    await dispatch.until(lambda: dispatch.hellos[-1].applied_seq == 4)
    assert not dispatch.hellos[-1].fresh_journal


async def test_what_was_given_up_is_not_started_after_a_restart(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.take_reports = dispatch.acknowledge = False
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.snapshot = [attempt(1)]
    await agent.start()
    await dispatch.until(lambda: bool(dispatch.heartbeats))
    await agent.stop(in_order=False)
    dispatch.take_reports = dispatch.acknowledge = True
    await agent.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.end_of(attempt(1)).reason is ReasonCode.EXIT_UNKNOWN
    assert agent.ledger("start") == []


async def test_a_journal_from_before_the_start_claims_the_run_again(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await dispatch.until(lambda: bool(dispatch.heartbeats))
    await agent.stop()
    journal = agent.settings.data_dir / "journal"
    old = journal.read_bytes()
    await agent.start()
    dispatch.start_attempt(attempt(1), job(2), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    await agent.stop()
    journal.write_bytes(old)
    dispatch.report_seq = 0
    dispatch.reports.clear()
    dispatch.applied_seq = 0
    await agent.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STARTED, FINISHED]
    assert len(agent.ledger("start")) == 1


@pytest.mark.parametrize("live", [True, False], ids=["live", "not live"])
async def test_a_wrapper_that_is_late_does_not_start_what_was_taken_over(
    dispatch: FakeDispatch, tmp_path: Path, live: bool
) -> None:
    agent = Running(local(tmp_path, dispatch))
    run = agent.settings.data_dir / "runs" / "1.1"
    run.mkdir(parents=True)
    dispatch.void(attempt(1))
    dispatch.snapshot = [attempt(1)] if live else []
    await agent.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STOPPED]
    ended = agent.settings.data_dir / "ended" / "1.1"
    await eventually((ended / "started").exists)
    await agent.stop()
