"""What dispatch gets to know of the nodes, and what a rejection leads to."""

from typing import cast

import pytest
import yaml

from atoll.agent import stock
from atoll.agent.backends.simulated import SimulatedBackend
from atoll.agent.stock import NODES_PER_MESSAGE
from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import DeviceGrant
from atoll.wire.inventory import inventory_hash, node_from_proto
from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import NODES, Running
from tests.support.waiting import eventually


def folded(updates: list[agent_pb2.InventoryUpdate]) -> dict[str, NodeInventory]:
    """The nodes after all these updates."""
    nodes: dict[str, NodeInventory] = {}
    number = 0
    for update in updates:
        if update.full and update.number != number:
            nodes = {}
        number = update.number
        nodes |= {node.name: node_from_proto(node) for node in update.nodes}
        for name in update.gone:
            del nodes[name]
    return nodes


async def settled(dispatch: FakeDispatch) -> dict[str, NodeInventory]:
    """The nodes, when a heartbeat and all updates agree."""

    def agreed() -> bool:
        return bool(
            dispatch.inventories
            and dispatch.heartbeats
            and not dispatch.inventories[-1].more
            and dispatch.heartbeats[-1].inventory_hash == dispatch.inventories[-1].hash
        )

    await dispatch.until(agreed)
    return folded(dispatch.inventories)


async def test_the_first_inventory_is_whole_and_its_hash_is_everybodys(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    nodes = await settled(dispatch)
    assert sorted(nodes) == ["n-0000", "n-0001", "n-0002", "n-0003"]
    assert dispatch.inventories[0].full
    assert dispatch.inventories[-1].hash == inventory_hash(nodes)
    assert nodes["n-0003"].domains == (("rack", "n-rack-0001"),)
    assert len(nodes["n-0000"].devices) == 8


async def test_only_what_changed_is_sent_under_a_higher_number(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await settled(dispatch)
    before = dispatch.inventories[-1].number
    agent.misbehave(nodes={"n-0001": {"hide_devices": [0, 5]}, "n-0002": {"gone": True}})
    await dispatch.until(lambda: dispatch.inventories[-1].number > before)
    nodes = await settled(dispatch)
    change = dispatch.inventories[-1]
    assert not change.full
    assert [node.name for node in change.nodes] == ["n-0001"]
    assert list(change.gone) == ["n-0002"]
    assert [device.index for device in nodes["n-0001"].devices] == [1, 2, 3, 4, 6, 7]
    assert change.hash == inventory_hash(nodes)
    agent.misbehave()
    await dispatch.until(lambda: dispatch.inventories[-1].number > change.number)
    assert inventory_hash(await settled(dispatch)) == inventory_hash(
        folded(dispatch.inventories[:1])
    )


async def test_a_resync_is_whole_and_has_a_higher_number(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await settled(dispatch)
    before = dispatch.inventories[-1].number
    dispatch.send(resync=agent_pb2.ResyncInventory())
    await dispatch.until(lambda: dispatch.inventories[-1].number > before)
    assert dispatch.inventories[-1].full
    assert len(dispatch.inventories[-1].nodes) == 4


async def test_numbers_rise_over_restarts(dispatch: FakeDispatch, agent: Running) -> None:
    await agent.start()
    await settled(dispatch)
    before = dispatch.inventories[-1].number
    await agent.stop()
    await agent.start()
    await dispatch.until(lambda: len(dispatch.hellos) == 2 and len(dispatch.inventories) >= 2)
    assert dispatch.inventories[-1].number > before


async def test_a_session_that_follows_at_once_sends_nothing_that_is_known(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    await settled(dispatch)
    beats = len(dispatch.heartbeats)
    await dispatch.until(lambda: len(dispatch.heartbeats) > beats + 2)
    sent = len(dispatch.inventories)
    dispatch.drop()
    await dispatch.until(lambda: len(dispatch.hellos) == 2)
    beats = len(dispatch.heartbeats)
    await dispatch.until(lambda: len(dispatch.heartbeats) > beats + 2)
    assert len(dispatch.inventories) == sent


async def test_a_large_inventory_comes_in_parts(
    dispatch: FakeDispatch, agent: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 2 * NODES_PER_MESSAGE + 1
    group = NODES["nodes"][0] | {"count": count}
    assert agent.settings.cluster_file is not None
    agent.settings.cluster_file.write_text(yaml.safe_dump({"nodes": [group]}))
    await agent.start()
    nodes = await settled(dispatch)
    assert len(nodes) == count
    assert [update.more for update in dispatch.inventories[-3:]] == [True, True, False]


async def test_a_rejection_names_its_nodes_and_a_later_inventory_follows(
    dispatch: FakeDispatch, agent: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stock, "DOUBT_S", 0.05)
    await agent.start()
    await settled(dispatch)
    assert agent.parts is not None
    agent.misbehave(nodes={"n-0001": {"hide_devices": [1]}}, inventory_lag_s=3600)
    backend = cast(SimulatedBackend, agent.parts.backend)
    await eventually(lambda: bool(backend.faults.nodes))
    dispatch.start_attempt(attempt(1), job(), on(0, 1, devices=[DeviceGrant(1, 100)]))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    end = dispatch.end_of(attempt(1))
    assert end.reason is ReasonCode.DEVICE_ABSENT
    assert end.suspects == (2,)
    await dispatch.until(lambda: dispatch.inventories[-1].number > end.inventory_number)
    assert [node.name for node in dispatch.inventories[-1].nodes] == ["n-0001"]
    assert len(dispatch.inventories[-1].nodes[0].devices) == 7
