"""Brings the whole stack up, in the order in which one needs the other."""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from atoll.adapters.postgres.migrate import upgrade
from atoll.client.endpoints import Endpoints, write_endpoints
from atoll.embedded import recipes
from atoll.embedded.clusters import Cluster, Clusters
from atoll.embedded.layout import Layout
from atoll.embedded.parts import Part, ServerPart, ServicePart
from atoll.embedded.ports import PortBook
from atoll.embedded.recipes import Stores
from atoll.embedded.state import Board, PartView, Phase
from atoll.embedded.supervisor import Supervisor
from atoll.runtime.servers import EtcdServer, PostgresServer, Server, ValkeyServer

S = TypeVar("S", bound=Server)
STARTING_SERVICES: Final = (
    "starting the services; at the first start placement compiles its kernels, a minute or two"
)


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
        self._board.tell(step=STARTING_SERVICES)
        await self._supervisor.start([self._service(name, stores) for name in recipes.SERVICES])
        self._board.tell(step="starting the broker, waiting for the agents' sessions")
        agents = [self._agent(one) for one in self._clusters.clusters]
        await self._supervisor.start([self._broker(stores), *agents])
        self._ports.settle((*recipes.SERVERS, *recipes.SERVICES, recipes.BROKER))
        self._write_endpoints()
        self._supervisor.after_restart(self._write_endpoints)  # ports of metrics may change
        self._board.tell(step="", phase=Phase.READY)

    def _announce(self) -> None:
        """Show all that is to come, so that progress can be seen."""
        agents = map(recipes.agent_name, self._clusters.clusters)
        names = (*recipes.SERVERS, *recipes.SERVICES, recipes.BROKER, *agents)
        self._board.add(*(PartView(name=name) for name in names))
        self._board.tell(step="starting the servers")

    async def _start_servers(self) -> Stores:
        postgres = ServerPart("postgres", self._made(PostgresServer, "postgres"))
        etcd = ServerPart("etcd", self._made(EtcdServer, "etcd"))
        valkey = ServerPart("valkey", self._made(ValkeyServer, "valkey"))
        await self._supervisor.start([postgres, etcd, valkey])
        return Stores(
            dsn=postgres.server.dsn,
            redis_url=valkey.server.url,
            etcd_endpoints=etcd.server.endpoints,
        )

    def _made(self, kind: type[S], name: str) -> Callable[[], S]:
        return lambda: kind(self._layout.server(name), port=self._ports.port(name))

    def _service(self, name: str, stores: Stores) -> Part:
        make = partial(recipes.service, name, self._layout, self._ports, stores=stores)
        return ServicePart(name, self._layout.log(name), make)

    def _broker(self, stores: Stores) -> Part:
        make = partial(
            recipes.broker,
            self._layout,
            self._ports,
            stores=stores,
            dispatch=self._board.view("dispatch").address,
            supervisor=os.getpid(),
            given=self._clusters.burst,
        )
        return ServicePart(recipes.BROKER, self._layout.log(recipes.BROKER), make)

    def _agent(self, cluster: Cluster) -> Part:
        dispatch = self._board.view("dispatch").address
        name = recipes.agent_name(cluster)
        make = partial(recipes.agent, self._layout, self._ports, cluster, dispatch=dispatch)
        return ServicePart(name, self._layout.log(name), make)

    def _write_endpoints(self) -> None:
        report = self._board.report
        endpoints = Endpoints(
            name=self._layout.name,
            submission=self._board.view("submission").address,
            placement=(self._board.view("placement").address,),
            reservation=(self._board.view("reservation").address,),
            burst=(self._board.view(recipes.BROKER).address,),
            dispatch=self._board.view("dispatch").address,
            metrics={
                view.name: f"http://{view.metrics}/metrics" for view in report.parts if view.metrics
            },
            pid=report.pid,
        )
        write_endpoints(self._layout.endpoints, endpoints)
