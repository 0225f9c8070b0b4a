"""One suite over every registry; the real one also keeps entries through outages."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from atoll.adapters.etcd import EtcdConnection, EtcdRegistry
from atoll.adapters.etcd import keys as etcd_keys
from atoll.adapters.etcd.methods import DELETE
from atoll.adapters.etcd.wire import etcdwire_pb2 as wire
from atoll.adapters.memory.registry import MemoryRegistry
from atoll.adapters.system import SystemClock
from atoll.ports.registry import Endpoint, RegistryPort, RegistryUnavailable
from tests.support.proxy import Proxy
from tests.support.servers import EtcdLike
from tests.support.waiting import eventually

TTL_S = 2.0


class EtcdWorld:
    """A registry behind a proxy, and another way to look at it."""

    def __init__(self, server: EtcdLike, prefix: str, proxy: Proxy) -> None:
        self.prefix = prefix
        self.proxy = proxy
        self.behind = EtcdConnection([proxy.address])
        self.direct = EtcdConnection(server.endpoints)
        self.registry = EtcdRegistry(self.behind, clock=SystemClock(), prefix=prefix)
        self.observer = EtcdRegistry(self.direct, clock=SystemClock(), prefix=prefix)

    async def listed(self) -> tuple[Endpoint, ...]:
        return await self.observer.list("dispatch")


@pytest.fixture
async def world(etcd_server: EtcdLike, etcd_prefix: str) -> AsyncIterator[EtcdWorld]:
    """Over one member."""
    async with Proxy(etcd_server.members[0].port) as proxy:
        made = EtcdWorld(etcd_server, etcd_prefix, proxy)
        yield made
        await made.behind.close()
        await made.direct.close()


@pytest.fixture(params=["memory", "etcd"])
def registry(request: pytest.FixtureRequest) -> RegistryPort:
    """Each kind in turn."""
    if request.param == "memory":
        return MemoryRegistry()
    world: EtcdWorld = request.getfixturevalue("world")
    return world.registry


async def test_instances_are_listed_in_the_order_of_their_identities(
    registry: RegistryPort,
) -> None:
    assert await registry.list("dispatch") == ()
    entered = [
        await registry.register("dispatch", identity, address=address, ttl_s=TTL_S)
        for identity, address in (("b/2", "h:2"), ("a 1", "h:1"))
    ]
    other = await registry.register("dispatch-2", "c", address="h:3", ttl_s=TTL_S)
    assert await registry.list("dispatch") == (Endpoint("a 1", "h:1"), Endpoint("b/2", "h:2"))
    await entered[0].close()
    assert await registry.list("dispatch") == (Endpoint("a 1", "h:1"),)
    await entered[1].close()
    await other.close()


async def test_an_instance_that_enters_again_moves(registry: RegistryPort) -> None:
    first = await registry.register("s", "a", address="old:1", ttl_s=TTL_S)
    second = await registry.register("s", "a", address="new:1", ttl_s=TTL_S)
    await first.close()
    assert await registry.list("s") == (Endpoint("a", "new:1"),)
    await second.close()
    assert await registry.list("s") == ()


async def test_an_entry_vanishes_with_its_process_and_returns_with_it(world: EtcdWorld) -> None:
    entry = await world.registry.register("dispatch", "a", address="h:1", ttl_s=TTL_S)
    world.proxy.blackhole()
    await eventually(lambda: is_listed(world, expected=False))
    world.proxy.heal()
    await eventually(lambda: is_listed(world, expected=True))
    await asyncio.sleep(1.5 * TTL_S)
    assert await is_listed(world, expected=True)
    await entry.close()
    assert await is_listed(world, expected=False)


async def test_a_deleted_entry_is_made_again(world: EtcdWorld) -> None:
    entry = await world.registry.register("dispatch", "a", address="h:1", ttl_s=TTL_S)
    before = await etcd_keys.list_below(world.direct, world.prefix)
    key = before.entries[0].key.encode()
    await world.direct.call(DELETE, wire.DeleteRangeRequest(key=key))
    await eventually(lambda: is_listed(world, expected=True))
    after = await etcd_keys.list_below(world.direct, world.prefix)
    assert after.entries[0].created > before.entries[0].created
    await entry.close()


async def test_an_unreachable_registry_says_so(world: EtcdWorld) -> None:
    world.proxy.refuse()
    with pytest.raises(RegistryUnavailable):
        await world.registry.list("dispatch")
    with pytest.raises(RegistryUnavailable):
        await world.registry.register("dispatch", "a", address="h:1", ttl_s=TTL_S)


async def is_listed(world: EtcdWorld, *, expected: bool) -> bool:
    return (await world.listed() == (Endpoint("a", "h:1"),)) is expected
