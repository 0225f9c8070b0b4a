"""Brings the whole stack up, in the order in which one needs the other."""

import asyncio
from collections.abc import Mapping

from atoll.adapters.postgres.migrate import upgrade
from atoll.client.endpoints import Endpoints, write_endpoints
from atoll.embedded import recipes
from atoll.embedded.clusters import Clusters
from atoll.embedded.layout import Layout
from atoll.embedded.parts import Part, ServerPart, Service, ServicePart
from atoll.embedded.ports import PortBook
from atoll.embedded.recipes import Stores
from atoll.embedded.state import Board, PartView, Phase
from atoll.embedded.supervisor import Supervisor
from atoll.runtime.servers import EtcdServer, PostgresServer, ValkeyServer


class Stack:
    """Servers, then migrations, then services, then one agent per cluster."""

    def __init__(
        self, layout: Layout, board: Board, supervisor: Supervisor, *, clusters: Clusters
    ) -> None:
        self._layout = layout
        self._board = board
        self._supervisor = supervisor
        self._clusters = clusters
        self._ports = PortBook(layout.ports)

    async def up(self) -> None:
        """Return when everything serves; raises PartFailed."""
        self._announce()
        stores = await self._start_servers()
        self._board.tell(step="applying migrations")
        await asyncio.to_thread(upgrade, stores.dsn)
        self._board.tell(step="starting the services")
        services = {s.name: s for s in recipes.services(self._layout, self._ports, stores)}
        await self._supervisor.start([ServicePart(service) for service in services.values()])
        self._board.tell(step="waiting for the agents' sessions")
        await self._supervisor.start(self._agents(services["dispatch"]))
        self._write_endpoints(services)
        self._board.tell(step="", phase=Phase.READY)

    def _announce(self) -> None:
        """Show all that is to come, so that progress can be seen."""
        agents = map(recipes.agent_name, self._clusters.clusters)
        names = (*recipes.SERVERS, *recipes.SERVICES, *agents)
        self._board.add(*(PartView(name=name) for name in names))
        self._board.tell(step="starting the servers")

    async def _start_servers(self) -> Stores:
        postgres = PostgresServer(
            self._layout.server("postgres"), port=self._ports.port("postgres")
        )
        etcd = EtcdServer(self._layout.server("etcd"), port=self._ports.port("etcd"))
        valkey = ValkeyServer(self._layout.server("valkey"), port=self._ports.port("valkey"))
        servers = {"postgres": postgres, "etcd": etcd, "valkey": valkey}
        await self._supervisor.start([ServerPart(*named) for named in servers.items()])
        return Stores(dsn=postgres.dsn, redis_url=valkey.url, etcd_endpoints=etcd.endpoints)

    def _agents(self, dispatch: Service) -> list[Part]:
        return [
            ServicePart(
                recipes.agent(self._layout, self._ports, cluster, dispatch=dispatch.address)
            )
            for cluster in self._clusters.clusters
        ]

    def _write_endpoints(self, services: Mapping[str, Service]) -> None:
        endpoints = Endpoints(
            name=self._layout.name,
            submission=services["submission"].address,
            placement=(services["placement"].address,),
            dispatch=services["dispatch"].address,
            metrics={
                view.name: f"http://{view.metrics}/metrics"
                for view in self._board.report.parts
                if view.metrics
            },
            pid=self._board.report.pid,
        )
        write_endpoints(self._layout.endpoints, endpoints)
