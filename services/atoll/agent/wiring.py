"""The composition root: settings to a running agent."""

import asyncio
import os
from collections.abc import Callable
from typing import Final

import grpc

from atoll.agent import telemetry
from atoll.agent.agent import Agent
from atoll.agent.backends.registry import make_backend
from atoll.agent.journal import Journal, lock_folder, open_journal
from atoll.agent.lease import Lease
from atoll.agent.parts import Parts
from atoll.agent.reports import Reports
from atoll.agent.settings import AgentSettings
from atoll.agent.stock import Stock
from atoll.agent.worker import Worker
from atoll.core.model.ids import ClusterName
from atoll.ports.backend import Backend
from atoll.ports.clock import Clock
from atoll.runtime.process import Process, run
from atoll.runtime.rpc.channel import channel

MOST_MESSAGE_BYTES: Final = 64 << 20
"""A START carries the whole spec of a job, a Welcome the ids of all live attempts."""


def main() -> int:
    """Run the agent to its end; the exit code."""
    return run("agent", AgentSettings, serve)


async def serve(process: Process[AgentSettings]) -> None:
    """Drive the backend until the process is told to stop; raises what keeps it from that."""
    settings, exits = process.settings, process.exits
    exits.callback(os.close, await asyncio.to_thread(lock_folder, settings.data_dir))
    backend = make_backend(settings, process.clock)
    exits.push_async_callback(backend.close)
    journal = await asyncio.to_thread(
        open_journal, settings.data_dir, settings.cluster, instance=process.ids.uuid()
    )
    exits.push_async_callback(journal.close)
    found = await backend.open()
    parts = make_parts(settings, backend, journal, clock=process.clock)
    exits.push_async_callback(parts.worker.close)
    process.readiness = parts.lease.valid
    telemetry.LEASED.set_function(parts.lease.valid)
    agent = Agent(parts, settings.dispatch, dial=dialler(settings), ids=process.ids)
    agent.restore(found)
    await agent.run(process.stopping)


def make_parts(
    settings: AgentSettings, backend: Backend, journal: Journal, *, clock: Clock
) -> Parts:
    """An agent without its session."""
    cluster = ClusterName(settings.cluster)
    lease = Lease(clock)
    stock = Stock(backend, journal, clock)
    reports = Reports(cluster, journal, clock, seen=lambda: stock.number)
    return Parts(
        cluster=cluster,
        labels=settings.label_pairs,
        limits=settings.limits,
        clock=clock,
        backend=backend,
        journal=journal,
        reports=reports,
        stock=stock,
        worker=Worker(backend, reports, stock, lease=lease, clock=clock),
        lease=lease,
        join_token=settings.join_token.get_secret_value(),
    )


def dialler(settings: AgentSettings) -> Callable[[str], grpc.aio.Channel]:
    """Makes channels to dispatch replicas."""
    return lambda address: channel(address, settings, max_message_bytes=MOST_MESSAGE_BYTES)
