"""The store's inventory is the agent's; where they differ the agent is asked for all of it."""

from dataclasses import replace

from atoll.core.model.errors import ErrorCode
from atoll.core.model.inventory import Device, LocalUse, NodeInventory
from atoll.wire.inventory import inventory_hash
from tests.services.dispatch.fake_agent import FakeAgent
from tests.services.dispatch.worlds import World, node
from tests.support.waiting import eventually

A, B, C = node("a"), node("b"), node("c")


async def opened(world: World) -> FakeAgent:
    agent = await world.agent(await world.replica())
    await agent.open()
    return agent


async def listed(world: World) -> dict[str, NodeInventory]:
    rows = await world.stores.submission.nodes("alpha", after=("", ""), limit=1000)
    return {row.inventory.name: row.inventory for row in rows}


async def shows(world: World, *nodes: NodeInventory) -> None:
    """Wait until the store has just these nodes."""

    async def same() -> bool:
        return await listed(world) == {each.name: each for each in nodes}

    await eventually(same)


async def beat(agent: FakeAgent, number: int, *nodes: NodeInventory, inventory: int) -> None:
    """A heartbeat that tells the hash of these nodes; returns when it is answered."""
    digest = inventory_hash({each.name: each for each in nodes})
    await agent.beat(number, inventory_number=inventory, inventory_hash=digest)
    await eventually(lambda: number in agent.beats)


async def test_parts_make_one_inventory(world: World) -> None:
    agent = await opened(world)
    await agent.inventory(1, [A], more=True)
    await agent.inventory(1, [B], more=True)
    await agent.inventory(1, [C], whole=[A, B, C])
    await shows(world, A, B, C)
    await beat(agent, 1, A, B, C, inventory=1)
    assert agent.resyncs == 0


async def test_a_delta_changes_adds_and_removes(world: World) -> None:
    agent = await opened(world)
    await agent.inventory(1, [A, B])
    device = Device(index=0, kind="H100", memory_bytes=80 << 30, healthy=False)
    busy = replace(A, devices=(device,), local_use=LocalUse(cpu_milli=5, blocks=((0, 50),)))
    await agent.inventory(2, [busy, C], full=False, gone=["b"], whole=[busy, C])
    await shows(world, busy, C)
    await beat(agent, 1, busy, C, inventory=2)
    assert agent.resyncs == 0


async def test_a_full_inventory_forgets_what_it_lacks(world: World) -> None:
    agent = await opened(world)
    await agent.inventory(1, [A, B, C])
    await agent.inventory(2, [B])
    await shows(world, B)


async def test_an_unfinished_inventory_changes_nothing(world: World) -> None:
    agent = await opened(world)
    await agent.inventory(1, [A])
    await agent.inventory(2, [B], more=True)
    await agent.inventory(3, [A, C])
    await shows(world, A, C)


async def test_another_hash_asks_for_everything_once(world: World) -> None:
    agent = await opened(world)
    await agent.inventory(1, [A])
    for number in range(1, 4):
        await beat(agent, number, A, B, inventory=1)
    await eventually(lambda: agent.resyncs == 1)
    await agent.inventory(2, [A, B])
    await shows(world, A, B)
    await beat(agent, 4, A, B, inventory=2)
    assert agent.resyncs == 1


async def test_a_wrong_sum_after_a_delta_asks_for_everything(world: World) -> None:
    agent = await opened(world)
    await agent.inventory(1, [A])
    await agent.inventory(2, [C], full=False, whole=[A, B, C])
    await eventually(lambda: agent.resyncs == 1)


async def test_a_lost_update_is_found_by_its_number(world: World) -> None:
    agent = await opened(world)
    await agent.inventory(1, [A])
    for number in range(1, 4):
        assert agent.resyncs == 0
        await beat(agent, number, A, B, inventory=2)
    await eventually(lambda: agent.resyncs == 1)


async def test_an_older_number_is_not_taken(world: World) -> None:
    agent = await opened(world)
    await agent.inventory(5, [A, B])
    await agent.inventory(4, [A])
    await eventually(lambda: agent.resyncs == 1)
    await shows(world, A, B)


async def test_a_new_session_compares_with_what_is_stored(world: World) -> None:
    agent = await opened(world)
    await agent.inventory(3, [A, B])
    await shows(world, A, B)
    await agent.drop()
    await agent.open()
    await beat(agent, 1, A, B, inventory=3)
    assert agent.resyncs == 0
    await beat(agent, 2, A, inventory=3)
    await eventually(lambda: agent.resyncs == 1)


async def test_an_inventory_without_end_ends_the_session(world: World) -> None:
    agent = await world.agent(await world.replica(max_nodes=10))
    await agent.open()
    for first in range(0, 12, 3):
        part = [node(f"n{number}") for number in range(first, first + 3)]
        await agent.inventory(1, part, more=True, whole=[])
    await agent.ended()
    assert agent.errors[-1].code is ErrorCode.TOO_LARGE
    assert await listed(world) == {}
