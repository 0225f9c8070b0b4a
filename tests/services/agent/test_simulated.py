"""The simulated cluster's misbehaviour, and that its ledger tells the truth about it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from atoll.agent.simcluster.ledger import FILE
from atoll.agent.simcluster.misbehaviour import parse
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import DeviceGrant
from atoll.core.model.spec import OnLost
from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import Running, simulated
from tests.support.waiting import eventually

STARTED, FINISHED, STOPPED = AttemptEvent.STARTED, AttemptEvent.FINISHED, AttemptEvent.STOPPED
REJECTED = AttemptEvent.REJECTED


async def broken(agent: Running, **how: Any) -> None:
    """Misbehave, and wait until the cluster does."""
    agent.misbehave(**how)
    assert agent.parts is not None
    backend: Any = agent.parts.backend
    await eventually(lambda: backend.faults == parse(how))


async def test_a_node_that_dies_ends_its_gangs_whole_and_once(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0, 1, 2))
    dispatch.start_attempt(attempt(2), job(0.5), on(3))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    await broken(agent, nodes={"n-0001": {"down": True}})
    await dispatch.until(lambda: dispatch.ended(attempt(1), attempt(2)))
    assert dispatch.end_of(attempt(1)).reason is ReasonCode.NODE_DIED
    assert dispatch.end_of(attempt(1)).exit_code is None
    assert dispatch.end_of(attempt(2)).exit_code == 0
    assert [e["how"] for e in agent.ledger("stop") if e["attempt"] == attempt(1)] == ["NODE_DIED"]
    dispatch.start_attempt(attempt(3), job(), on(1))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(3)))
    assert dispatch.end_of(attempt(3)).reason is ReasonCode.NODE_ABSENT


async def test_a_gang_of_which_several_nodes_die_at_once_ends_once(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0, 1, 2))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    await broken(agent, nodes={"n-0001": {"down": True}, "n-0002": {"gone": True}})
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.end_of(attempt(1)).reason is ReasonCode.NODE_DIED
    await broken(agent)
    dispatch.start_attempt(attempt(2), job(), on(0, 1, 2))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(2)))
    assert dispatch.end_of(attempt(2)).exit_code == 0


@pytest.mark.parametrize(
    "fault", [{"fail_bind": True}, {"hang": True}], ids=["fails to bind", "hangs"]
)
async def test_a_gang_that_binds_in_part_is_unwound_before_it_is_rejected(
    dispatch: FakeDispatch, agent: Running, fault: dict[str, bool]
) -> None:
    await agent.start()
    await broken(agent, nodes={"n-0002": fault}, bind_timeout_s=0.2)
    whole = [DeviceGrant(0, 100)]
    dispatch.start_attempt(attempt(1), job(), on(0, 1, 2, devices=whole))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    end = dispatch.end_of(attempt(1))
    assert (end.event, end.reason, end.suspects) == (REJECTED, ReasonCode.GANG_UNWOUND, (3,))
    assert dispatch.events(attempt(1)) == [REJECTED]
    (start,), (stop,) = agent.ledger("start"), agent.ledger("stop")
    assert (start["partial"], [task["rank"] for task in start["tasks"]]) == (True, [0, 1])
    assert stop["how"] == "UNWOUND"
    dispatch.start_attempt(attempt(2), job(), on(0, 1, devices=whole))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(2)))
    assert dispatch.events(attempt(2)) == [STARTED, FINISHED]
    assert agent.ledger("violation") == []


async def test_a_gang_that_is_bound_in_part_is_unwound_before_its_agent_leaves(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await broken(agent, nodes={"n-0001": {"hang": True}}, bind_timeout_s=3600)
    dispatch.start_attempt(attempt(1), job(), on(0, 1))
    dispatch.push()
    await eventually(lambda: len(agent.ledger("start")) == 1)
    await agent.stop(in_order=False)
    agent.misbehave()
    await agent.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [REJECTED]
    assert [entry["how"] for entry in agent.ledger("stop")] == ["UNWOUND"]


async def test_a_start_that_hangs_is_ended_by_a_stop(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await broken(agent, hang=True)
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.push()
    beats = len(dispatch.heartbeats)
    await dispatch.until(lambda: len(dispatch.heartbeats) > beats + 5)
    assert dispatch.reports == []
    dispatch.stop_attempt(attempt(1))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    await broken(agent)
    dispatch.start_attempt(attempt(2), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(2)))
    assert dispatch.events(attempt(1)) == [STOPPED]
    assert [entry["attempt"] for entry in agent.ledger("start")] == [attempt(2)]


async def test_a_start_that_hangs_goes_on_when_it_is_let(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await broken(agent, hang=True, delay_s=0.01)
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.applied_seq == 1)
    await broken(agent)
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STARTED, FINISHED]


async def test_everything_can_be_rejected(dispatch: FakeDispatch, agent: Running) -> None:
    await agent.start()
    await broken(agent, reject=True)
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.end_of(attempt(1)).reason is ReasonCode.BACKEND_ERROR


async def test_local_users_are_in_the_inventory_and_in_the_way(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    use = {"cpu_milli": 63_950, "blocks": {"1": 60}}
    await broken(agent, nodes={"n-0000": {"local_use": use}})
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.start_attempt(attempt(2), job(), on(1, devices=[DeviceGrant(1, 50)]))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1), attempt(2)))
    assert dispatch.end_of(attempt(1)).reason is ReasonCode.CAPACITY_TAKEN
    assert dispatch.events(attempt(2)) == [STARTED, FINISHED]
    assert agent.ledger("violation") == []

    def shown() -> list[dict[int, int]]:
        nodes = [node for update in dispatch.inventories for node in update.nodes]
        return [dict(node.local_use.blocks) for node in nodes if node.local_use.cpu_milli]

    await dispatch.until(lambda: shown()[:1] == [{1: 60}])


async def test_a_second_owner_is_a_violation(dispatch: FakeDispatch, agent: Running) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0, devices=[DeviceGrant(3, 60)]))
    dispatch.start_attempt(attempt(2), job(), on(0, devices=[DeviceGrant(3, 50)]))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(2)))
    assert dispatch.end_of(attempt(2)).reason is ReasonCode.CAPACITY_TAKEN
    (violation,) = agent.ledger("violation")
    assert violation["what"] == "DOUBLE_ALLOCATION"
    assert (violation["attempt"], violation["with"]) == (attempt(2), [attempt(1)])
    assert violation["node"] == "n-0000"


async def test_slices_of_a_device_may_be_apart_but_not_overlap(
    dispatch: FakeDispatch, agent: Running
) -> None:
    def sliced(mask: int) -> DeviceGrant:
        return DeviceGrant(0, slice_mask=mask, profile="2g.20gb")

    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0, devices=[sliced(0b0011)]))
    dispatch.start_attempt(attempt(2), job(60), on(0, devices=[sliced(0b1100)]))
    dispatch.start_attempt(attempt(3), job(60), on(0, devices=[sliced(0b0110)]))
    dispatch.start_attempt(attempt(4), job(60), on(0, devices=[DeviceGrant(0, 10)]))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(3), attempt(4)))
    assert dispatch.events(attempt(1)) == dispatch.events(attempt(2)) == [STARTED]
    assert len(agent.ledger("violation")) == 2


async def test_a_faster_cluster_finishes_sooner(dispatch: FakeDispatch, tmp_path: Path) -> None:
    agent = Running(simulated(tmp_path, dispatch, sim_speed=10_000.0))
    await agent.start()
    dispatch.start_attempt(attempt(1), job(3600), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    await agent.stop()


async def test_a_run_ends_when_it_was_due_though_nobody_was_there(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(0.3, 8), on(0))
    dispatch.start_attempt(attempt(2), job(60, on_lost=OnLost.REQUEUE), on(0))
    dispatch.push()
    await dispatch.until(lambda: all(map(dispatch.events, (attempt(1), attempt(2)))))
    await agent.stop(in_order=False)
    lease = agent.settings.data_dir / "lease.json"
    start = agent.ledger("start")[0]["at"]
    lease.write_text(json.dumps({"until": start + 0.4}))
    await asyncio.sleep(0.5)
    await agent.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1), attempt(2)))
    assert dispatch.end_of(attempt(1)).exit_code == 8
    assert dispatch.end_of(attempt(2)).reason is ReasonCode.STOPPED_BY_GUARD
    at = {entry["attempt"]: entry["at"] for entry in agent.ledger("stop")}
    assert at[attempt(1)] == agent.ledger("start")[0]["ends_at"]
    assert at[attempt(2)] == start + 0.4


async def test_a_torn_ledger_is_read_up_to_its_last_whole_line(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    await agent.stop(in_order=False)
    with (agent.settings.data_dir / FILE).open("a") as ledger:
        ledger.write('{"t":"stop","attempt":65')
    await agent.start()
    dispatch.stop_attempt(attempt(1))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert [entry["how"] for entry in agent.ledger("stop")] == ["STOPPED"]


async def test_nonsense_in_the_control_file_changes_nothing(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await broken(agent, reject=True)
    (agent.settings.data_dir / "misbehave.json").write_text("{ nonsense")
    await asyncio.sleep(0.2)
    dispatch.start_attempt(attempt(1), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.end_of(attempt(1)).reason is ReasonCode.BACKEND_ERROR
