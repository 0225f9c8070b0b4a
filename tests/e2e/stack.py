"""The whole of Atoll over real servers: services as processes, clusters as simulated agents."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import asyncpg
import yaml

from atoll.client import AsyncClient, ClientConfig
from atoll.runtime.servers.ports import free_ports
from tests.e2e.processes import ServiceProcess
from tests.support.lines import whole_lines
from tests.support.waiting import eventually

SMALL = {
    "levels": ["rack"],
    "nodes": [
        {
            "name": "n",
            "count": 8,
            "cpus": 64,
            "memory": "512Gi",
            "devices": {"kind": "H100", "count": 8, "memory": "80Gi"},
            "topology": {"rack": 4},
        }
    ],
}
QUICK = {
    "ATOLL_ELECTION_TTL_S": "2",
    "ATOLL_HEARTBEAT_S": "0.5",
    "ATOLL_LEASE_S": "3",
    "ATOLL_PERIOD_S": "0.5",
    "ATOLL_LISTEN_PERIOD_S": "0.5",
    "ATOLL_AUDIT_PERIOD_S": "2",
    "ATOLL_UNSCHEDULABLE_AFTER_S": "2",
    "ATOLL_TAKEOVER_GRACE_S": "3",
    "ATOLL_BIND_TIMEOUT_S": "5",
    "ATOLL_LOST_AFTER_S": "12",
    "ATOLL_STOP_AFTER_S": "4",
    "ATOLL_MAX_GRACE_S": "2",
    "ATOLL_CLOCK_MARGIN_S": "1",
    "ATOLL_AVOID_BASE_S": "1",
}
"""Short times, so that tests need not wait for the long ones."""


@dataclass
class Stack:
    """What a test drives. Processes are started by `start` and ended by `stop`."""

    folder: Path
    dsn: str
    etcd_endpoints: Sequence[str]
    redis_url: str
    etcd_prefix: str
    env: dict[str, str] = field(default_factory=dict)
    submission: ServiceProcess = field(init=False)
    placements: list[ServiceProcess] = field(default_factory=list)
    dispatches: list[ServiceProcess] = field(default_factory=list)
    reservations: list[ServiceProcess] = field(default_factory=list)
    brokers: list[ServiceProcess] = field(default_factory=list)
    agents: dict[str, ServiceProcess] = field(default_factory=dict)

    def base_env(self) -> dict[str, str]:
        """Settings that all services share."""
        return {
            **QUICK,
            "ATOLL_DSN": self.dsn,
            "ATOLL_REDIS_URL": self.redis_url,
            "ATOLL_ETCD_ENDPOINTS": ",".join(self.etcd_endpoints),
            "ATOLL_ETCD_PREFIX": self.etcd_prefix,
            "ATOLL_TRACE_FILE": str(self.folder / "traces.jsonl"),
            **self.env,
        }

    async def start(
        self,
        clusters: Iterable[str] = ("alpha",),
        *,
        placements: int = 1,
        dispatches: int = 1,
        reservations: int = 0,
        wrong: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    ) -> None:
        """Start everything, and wait until every agent has a session and its nodes are known.

        `wrong` tells how clusters misbehave from their first moment.
        """
        self.submission = self._service("submission")
        self.placements = [self._service("placement") for _ in range(placements)]
        self.dispatches = [self._service("dispatch") for _ in range(dispatches)]
        self.reservations = [self._service("reservation") for _ in range(reservations)]
        for service in self.processes():
            service.start()
        names = set(clusters)
        for cluster in sorted(names):
            agent = self.add_agent(cluster)
            if cluster in wrong:
                self.misbehave(cluster, wrong[cluster])
            agent.start()
        await asyncio.gather(*(p.wait_ready() for p in self.processes()))
        await eventually(lambda: self._knows_nodes_of(names))
        await self.leader()

    def stop(self) -> None:
        """End all processes, agents first."""
        for process in reversed(list(self.processes())):
            process.stop()

    def processes(self) -> list[ServiceProcess]:
        """All of them."""
        services = [self.submission, *self.placements, *self.dispatches, *self.reservations]
        return [*services, *self.brokers, *self.agents.values()]

    def add_placement(self) -> ServiceProcess:
        """Another placement replica, not started yet."""
        self.placements.append(self._service("placement"))
        return self.placements[-1]

    def add_broker(self, providers: Mapping[str, Any], **env: str) -> ServiceProcess:
        """Another replica of the burst service, not started yet."""
        broker = self._service(
            "burst",
            ATOLL_PROVIDERS=json.dumps(providers),
            ATOLL_JOIN_SECRET="a secret of these tests",
            ATOLL_DATA_DIR=str(self.folder / "burst"),
            ATOLL_DISPATCH=",".join(d.address for d in self.dispatches),
            **env,
        )
        self.brokers.append(broker)
        return broker

    def add_agent(
        self, cluster: str, *, description: object = SMALL, name: str = "", **env: str
    ) -> ServiceProcess:
        """An agent with a simulated cluster, not started yet; `name` tells two of one apart."""
        key = name or cluster
        data = self.folder / f"agent-{key}"
        data.mkdir(exist_ok=True)
        (data / "cluster.yaml").write_text(yaml.safe_dump(description))
        agent = self._service(
            "agent",
            ATOLL_CLUSTER=cluster,
            ATOLL_BACKEND="simulated",
            ATOLL_DATA_DIR=str(data),
            ATOLL_CLUSTER_FILE=str(data / "cluster.yaml"),
            ATOLL_DISPATCH=",".join(d.address for d in self.dispatches),
            **env,
        )
        self.agents[key] = agent
        return agent

    def misbehave(self, cluster: str, how: dict[str, Any]) -> None:
        """Tell a simulated cluster how to misbehave; {} ends it."""
        path = self.folder / f"agent-{cluster}" / "misbehave.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(how))
        fresh.rename(path)

    def ledger(self, cluster: str) -> list[dict[str, Any]]:
        """What really happened in a simulated cluster."""
        path = self.folder / f"agent-{cluster}" / "ledger.jsonl"
        return [json.loads(line) for line in whole_lines(path)]

    def client(self) -> AsyncClient:
        """A client of this stack."""
        return AsyncClient(
            config=ClientConfig(
                endpoint=self.submission.address,
                placement=tuple(p.address for p in self.placements),
                reservation=tuple(r.address for r in self.reservations),
                principal="tests",
            )
        )

    async def leader(self, *, but: ServiceProcess | None = None) -> ServiceProcess:
        """The placement replica that leads; waits for one that is not `but`."""
        for _ in range(1200):
            for placement in self.placements:
                if placement is not but and placement.running() and await leads(placement):
                    return placement
            await asyncio.sleep(0.1)
        tails = "\n".join(p.tail() for p in self.placements)
        raise AssertionError(f"nobody leads:\n{tails}")

    async def _knows_nodes_of(self, clusters: set[str]) -> bool:
        connection = await asyncpg.connect(self.dsn)
        try:
            found = await connection.fetch("SELECT DISTINCT cluster FROM nodes")
        finally:
            await connection.close()
        return clusters <= {row["cluster"] for row in found}

    def _service(self, service: str, **env: str) -> ServiceProcess:
        first, second = free_ports(2)
        return ServiceProcess(
            service,
            folder=self.folder,
            env={**self.base_env(), **env},
            ports=(first, second),
        )


async def leads(placement: ServiceProcess) -> bool:
    """Whether a replica says that it leads."""
    metrics = await asyncio.to_thread(metrics_of, placement, within_s=2)
    return metrics.get("atoll_placement_leading_info", 0.0) == 1.0


def metrics_of(process: ServiceProcess, *, within_s: float = 30.0) -> dict[str, float]:
    """Its metrics without labels' help; empty when it does not answer."""
    import urllib.request

    url = f"http://{process.metrics}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=within_s) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return {}
    pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, value in pairs}
