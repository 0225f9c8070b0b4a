"""The replica as its own process: it registers, serves, and leaves in good order."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator

import pytest

from atoll.adapters.etcd.connection import EtcdConnection
from atoll.adapters.etcd.registry import EtcdRegistry
from atoll.adapters.system import SystemClock
from atoll.core.model.errors import Unavailable
from atoll.core.model.ids import job_of
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.ports.registry import Endpoint
from tests.services.dispatch.fake_agent import FakeAgent
from tests.services.dispatch.values import story
from tests.services.dispatch.worlds import World, node
from tests.support.waiting import eventually


@pytest.fixture
async def dispatch(
    store_dsn: str, valkey_url: str, etcd_endpoints: tuple[str, ...], etcd_prefix: str
) -> AsyncIterator[Process]:
    """`python -m atoll.dispatch`."""
    told = {
        "ATOLL_DSN": store_dsn,
        "ATOLL_REDIS_URL": valkey_url,
        "ATOLL_ETCD_ENDPOINTS": ",".join(etcd_endpoints),
        "ATOLL_ETCD_PREFIX": etcd_prefix,
        "ATOLL_LISTEN": "127.0.0.1:0",
        "ATOLL_METRICS_LISTEN": "127.0.0.1:0",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "atoll.dispatch", env=os.environ | told
    )
    yield process
    if process.returncode is None:
        process.kill()
    await process.wait()


@pytest.fixture
async def registered(
    dispatch: Process, etcd_endpoints: tuple[str, ...], etcd_prefix: str
) -> AsyncIterator[EtcdRegistry]:
    """The registry, once the process is in it."""
    etcd = EtcdConnection(etcd_endpoints)
    registry = EtcdRegistry(etcd, clock=SystemClock(), prefix=f"{etcd_prefix}/services")

    async def entered() -> bool:
        return bool(await registry.list("dispatch"))

    await eventually(entered)
    yield registry
    await etcd.close()


async def address(registry: EtcdRegistry) -> str:
    endpoints: tuple[Endpoint, ...] = await registry.list("dispatch")
    return endpoints[0].address


async def test_it_serves_registers_and_sends_agents_away_at_sigterm(
    dispatch: Process, registered: EtcdRegistry, real_world: World
) -> None:
    agent = FakeAgent(await address(registered))
    real_world.exits.push_async_callback(agent.close)
    await agent.open()
    await agent.inventory(1, [node()])

    async def listed() -> bool:
        return bool(await real_world.nodes())

    await eventually(listed)
    (decision,) = await real_world.run(1)
    await eventually(lambda: agent.numbers == [1])
    await agent.report(story(decision.attempt, AttemptEvent.STARTED, AttemptEvent.FINISHED))
    await eventually(lambda: agent.report_seq == 2)
    assert (await real_world.job(job_of(decision.attempt))).state is JobState.SUCCEEDED
    dispatch.send_signal(signal.SIGTERM)
    await agent.ended()
    assert isinstance(agent.errors[-1], Unavailable)
    assert await dispatch.wait() == 0
    assert await registered.list("dispatch") == ()
