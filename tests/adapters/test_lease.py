"""How long a lease is believed in, to the moment: real etcd, a clock moved by hand."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from atoll.adapters.etcd import EtcdConnection
from atoll.adapters.etcd.errors import LeaseLost
from atoll.adapters.etcd.lease import Lease
from atoll.adapters.memory.clock import ManualClock
from tests.support.proxy import Proxy
from tests.support.servers import EtcdLike
from tests.support.waiting import eventually

TTL_S = 30.0
VALID_S = 27.0
"""The ttl less its tenth."""


@dataclass(frozen=True)
class World:
    """A lease granted at 0 on the clock, and the only way to etcd."""

    clock: ManualClock
    lease: Lease
    proxy: Proxy


@pytest.fixture
async def world(etcd_server: EtcdLike) -> AsyncIterator[World]:
    """A fresh lease."""
    clock = ManualClock()
    async with Proxy(etcd_server.members[0].port) as proxy:
        etcd = EtcdConnection([proxy.address], call_within_s=5)
        lease = await Lease.grant(etcd, clock, ttl_s=TTL_S)
        yield World(clock, lease, proxy)
        proxy.heal()
        await lease.revoke()
        await etcd.close()


async def test_unanswered_it_is_valid_until_its_grant_plus_ttl_less_the_margin(
    world: World,
) -> None:
    world.proxy.blackhole()
    await world.clock.advance(VALID_S - 0.1)
    assert world.lease.valid()
    losing = asyncio.ensure_future(world.lease.lost())
    await world.clock.advance(0.2)
    assert not world.lease.valid()
    assert losing.done()


async def test_an_answer_counts_from_when_its_question_was_sent(world: World) -> None:
    world.proxy.blackhole()
    await world.clock.advance(TTL_S / 3)  # the renewal is sent
    await eventually(lambda: world.proxy.held_chunks > 0)
    await world.clock.advance(2)  # and answered late
    world.proxy.heal()
    await eventually(lambda: world.clock.next_deadline() == 2 * TTL_S / 3)
    world.proxy.blackhole()
    await world.clock.advance(TTL_S / 3 + VALID_S - 0.1 - world.clock.monotonic())
    assert world.lease.valid()
    await world.clock.advance(0.2)
    assert not world.lease.valid()


async def test_an_answer_after_the_end_revives_nothing(world: World) -> None:
    world.proxy.blackhole()
    await world.clock.advance(TTL_S / 3)
    await eventually(lambda: world.proxy.held_chunks > 0)
    await world.clock.advance(VALID_S)
    world.proxy.heal()
    await asyncio.sleep(0.2)
    assert not world.lease.valid()


async def test_work_under_a_lease_ends_with_it(world: World) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    working = asyncio.ensure_future(world.lease.while_held(work()))
    await started.wait()
    world.proxy.blackhole()
    await world.clock.advance(VALID_S + 0.1)
    with pytest.raises(LeaseLost):
        await working
    assert cancelled.is_set()


async def test_work_that_ends_first_gives_its_result(world: World) -> None:
    async def answer() -> int:
        return 42

    assert await world.lease.while_held(answer()) == 42
    await world.lease.revoke()
    with pytest.raises(LeaseLost):
        await world.lease.while_held(answer())
