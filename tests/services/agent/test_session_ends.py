"""How sessions end, and what the agent does then."""

import asyncio
import json
from pathlib import Path

from pydantic import SecretStr

from atoll.adapters.system import SystemClock
from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import OnLost
from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import Running, simulated
from tests.support.waiting import eventually

STARTED, FINISHED, STOPPED = AttemptEvent.STARTED, AttemptEvent.FINISHED, AttemptEvent.STOPPED


async def test_a_cluster_that_is_held_is_asked_for_again(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.refuse_with = FailedPrecondition("held", code=ErrorCode.ALREADY_HELD)
    await agent.start()
    await dispatch.until(lambda: len(dispatch.hellos) >= 1)
    dispatch.refuse_with = None
    dispatch.start_attempt(attempt(1), job(), on(0))
    await dispatch.until(lambda: dispatch.ended(attempt(1)))


async def test_a_retired_clusters_agent_stops_everything(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    dispatch.refuse_with = FailedPrecondition("retired", code=ErrorCode.CLUSTER_RETIRED)
    dispatch.drop()
    await eventually(lambda: len(agent.ledger("stop")) == 1)


async def test_an_agent_that_is_told_to_end_says_goodbye(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    await agent.stop()
    assert dispatch.goodbyes == 1
    assert agent.ledger("stop") == []


async def test_an_agent_ends_though_nobody_answers(
    dispatch: FakeDispatch, agent: Running, tmp_path: Path
) -> None:
    await dispatch.stop()
    await agent.start()
    await asyncio.sleep(0.1)
    await agent.stop()
    assert dispatch.hellos == []


async def test_a_guard_that_is_too_slow_is_not_offered(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.lost_after_s = 50.0
    dispatch.start_attempt(attempt(1), job(on_lost=OnLost.REQUEUE), on(0))
    await agent.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert [hello.can_guard for hello in dispatch.hellos] == [True, False]
    assert dispatch.hellos[1].stop_after_s == 0
    assert dispatch.end_of(attempt(1)).reason is ReasonCode.ON_LOST_UNSUPPORTED
    dispatch.lost_after_s = 500.0
    dispatch.start_attempt(attempt(2), job(on_lost=OnLost.REQUEUE), on(0))
    dispatch.drop()
    await dispatch.until(lambda: dispatch.ended(attempt(2)))
    assert dispatch.hellos[-1].can_guard
    assert dispatch.events(attempt(2)) == [STARTED, FINISHED]


async def test_the_guards_lease_counts_from_the_question(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.answer_heartbeats = False
    await agent.start()
    await dispatch.until(lambda: len(dispatch.heartbeats) >= 1)
    asked = SystemClock().now()
    await asyncio.sleep(0.3)
    dispatch.send(heartbeat_ack=agent_pb2.HeartbeatAck(number=1))
    written = agent.settings.data_dir / "lease.json"
    await eventually(written.exists)
    until = json.loads(written.read_text())["until"]
    assert until <= asked + agent.settings.stop_after_s


async def test_a_session_whose_heartbeats_are_not_answered_is_given_up(
    dispatch: FakeDispatch, agent: Running
) -> None:
    dispatch.answer_heartbeats, dispatch.lease_s = False, 0.2
    await agent.start()
    await dispatch.until(lambda: len(dispatch.hellos) >= 2)


async def test_a_rented_clusters_agent_shows_its_token_each_time(
    dispatch: FakeDispatch, tmp_path: Path
) -> None:
    agent = Running(simulated(tmp_path, dispatch, join_token=SecretStr("word")))
    await agent.start()
    await dispatch.until(lambda: len(dispatch.hellos) == 1)
    dispatch.drop()
    await dispatch.until(lambda: len(dispatch.hellos) == 2)
    await agent.stop()
    assert [hello.join_token for hello in dispatch.hellos] == ["word", "word"]


async def test_an_agent_that_may_not_join_leaves_what_runs_alone(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    dispatch.refuse_with = FailedPrecondition("given up", code=ErrorCode.JOIN_REFUSED)
    dispatch.drop()
    await dispatch.until(lambda: len(dispatch.hellos) == 2)
    await agent.stop()
    assert agent.ledger("stop") == []
