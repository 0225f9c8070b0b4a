"""Puts a dispatch replica together: which adapters stand behind the ports."""

from atoll.adapters.postgres.store import PostgresStore
from atoll.api.agent.v1.agent_pb2_grpc import add_AgentServiceServicer_to_server
from atoll.dispatch.replica import Replica
from atoll.dispatch.settings import DispatchSettings
from atoll.runtime import outside
from atoll.runtime.loops import Backoff
from atoll.runtime.process import Process, run

SERVICE = "atoll.api.agent.v1.AgentService"
NAME = "dispatch"


def main() -> int:
    """Run one replica to its end."""
    return run(NAME, DispatchSettings, serve)


async def serve(process: Process[DispatchSettings]) -> None:
    """Build the replica, and serve agents until told to stop."""
    replica = _replica(process)
    server = process.server_for({
        SERVICE: lambda server: add_AgentServiceServicer_to_server(replica.servicer, server)
    })
    for name, loop in replica.loops().items():
        _ = process.supervisor.start(name, loop, backoff=Backoff(first_s=0.05, most_s=2.0))
    await server.start()
    _register(process, server.advertised)
    await process.stopping.wait()
    await server.set_serving(on=False)
    replica.send_away()
    await server.drain()


def _replica(process: Process[DispatchSettings]) -> Replica:
    settings = process.settings
    store = PostgresStore.open(
        settings.dsn.get_secret_value(),
        ids=process.ids,
        pool_size=settings.pool_size,
        application=NAME,
    )
    process.exits.push_async_callback(store.close)
    redis = settings.redis_url.get_secret_value()
    return Replica(
        store.dispatch,
        outside.decision_stream(process) if redis else None,
        outside.hints(process),
        settings=settings,
        holder=lambda: process.server.advertised if process.server else "",
        clock=process.clock,
        ids=process.ids,
    )


def _register(process: Process[DispatchSettings], address: str) -> None:
    """Enter the registry, as soon as etcd answers; agents that know the address do not wait."""
    if not process.settings.etcd_endpoints:
        return
    registry = outside.registry(process, outside.etcd(process))

    async def enter() -> None:
        registration = await registry.register(
            NAME, process.instance, address=address, ttl_s=process.settings.registry_ttl_s
        )
        process.exits.push_async_callback(registration.close)

    _ = process.supervisor.start("register", enter)
