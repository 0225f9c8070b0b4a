"""Puts a placement replica together: which adapters stand behind the ports."""

import asyncio

from atoll.adapters.etcd.election import EtcdElection
from atoll.adapters.postgres.store import PostgresStore
from atoll.api.placement.v1.placement_pb2_grpc import add_PlacementServiceServicer_to_server
from atoll.core.engine.kernels import warm
from atoll.core.policies.registry import policies
from atoll.placement.loops import Candidate
from atoll.placement.publish import Publisher
from atoll.placement.servicer import PlacementServicer
from atoll.placement.settings import PlacementSettings
from atoll.ports.registry import RegistryPort
from atoll.runtime import outside
from atoll.runtime.process import Process, run

SERVICE = "atoll.api.placement.v1.PlacementService"


def main() -> int:
    """Run one replica to its end."""
    return run("placement", PlacementSettings, serve)


async def serve(process: Process[PlacementSettings]) -> None:
    """Build the replica, serve, and stand for election until told to stop."""
    settings = process.settings
    await asyncio.to_thread(warm)  # a leader never compiles
    store = PostgresStore.open(
        settings.dsn.get_secret_value(), ids=process.ids, pool_size=4, application="placement"
    )
    process.exits.push_async_callback(store.close)
    etcd = outside.etcd(process)
    registry = outside.registry(process, etcd)
    candidate = _candidate(process, store, registry)
    servicer = PlacementServicer(candidate, classes=settings.priority_classes)
    server = process.server_for({
        SERVICE: lambda server: add_PlacementServiceServicer_to_server(servicer, server)
    })
    await server.start()
    election = EtcdElection(
        etcd,
        prefix=f"{settings.etcd_prefix}/elections/placement-{settings.shard}",
        identity=server.advertised,
        ttl_s=settings.election_ttl_s,
        clock=process.clock,
    )
    process.exits.push_async_callback(election.close)
    registration = await registry.register(
        "placement", process.instance, address=server.advertised, ttl_s=settings.registry_ttl_s
    )
    process.exits.push_async_callback(registration.close)
    term = process.supervisor.start("election", lambda: candidate.stand(election))
    await process.stopping.wait()
    # The term ends first, so that a standby need not wait for the lease.
    term.cancel()
    await asyncio.wait([term])
    await server.drain()


def _candidate(
    process: Process[PlacementSettings], store: PostgresStore, registry: RegistryPort
) -> Candidate:
    hints = outside.hints(process)
    publisher = Publisher(outside.decision_stream(process), hints)
    candidate = Candidate(
        settings=process.settings,
        store=store.placement,
        registry=registry,
        hints=hints,
        publisher=publisher,
        policies=policies(
            order=process.settings.queue_order,
            score=process.settings.score,
            objective=process.settings.objective,
            shares=process.settings.fair_share,
            boot_gap_s=process.settings.boot_gap_s,
        ),
        clock=process.clock,
    )
    _ = process.supervisor.start("publish", publisher.run)
    _ = process.supervisor.start("hints", candidate.watch_hints)
    return candidate
