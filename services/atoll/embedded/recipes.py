"""How each of our services is run: its command line, its settings, its addresses."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from atoll.adapters.system import SystemIds
from atoll.embedded.clusters import LOCAL, Cluster
from atoll.embedded.layout import Layout
from atoll.embedded.parts import Service
from atoll.embedded.ports import PortBook
from atoll.runtime.servers.account import private_file

SERVERS: Final = ("postgres", "etcd", "valkey")
SERVICES: Final = ("submission", "placement", "dispatch", "reservation")
BROKER: Final = "burst"
"""It is told where dispatch is, and so started after the services."""
PROCESS: Final = "process"
DOLLARS_PER_HOUR: Final = 0.25
"""What may be "spent" on machines that are rented here: nobody is to fill his own with agents."""
COMPILED_WITHIN_S: Final = 300.0
"""Kernels are compiled the first time, on two cores and beside everything else."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Where the servers are, passwords included."""

    dsn: str
    redis_url: str
    etcd_endpoints: tuple[str, ...]


def service(name: str, layout: Layout, ports: PortBook, *, stores: Stores) -> Service:
    """One of the services that hold no cluster; writes its settings."""
    return _replica(name, layout, ports, stores=stores, settings={})


def broker(
    layout: Layout,
    ports: PortBook,
    *,
    stores: Stores,
    dispatch: str,
    supervisor: int,
    given: Mapping[str, Any],
) -> Service:
    """The service that rents; what it rents are agents here, which end with the supervisor."""
    providers = given.get("providers", {"process": {}})
    settings = {
        "providers": {
            name: {**own, "ends_with": supervisor} if own.get("type", name) == PROCESS else own
            for name, own in providers.items()
        },
        "join_secret": _join_secret(layout),
        "data_dir": str(layout.rented),
        "deployment": layout.name,
        "dispatch": [dispatch],
        "policy_allowed": True,
        "policy_per_hour": DOLLARS_PER_HOUR,
        **{name: text for name, text in given.items() if name != "providers"},
    }
    return _replica(BROKER, layout, ports, stores=stores, settings=settings)


def _replica(
    name: str, layout: Layout, ports: PortBook, *, stores: Stores, settings: Mapping[str, Any]
) -> Service:
    listen, metrics = ports.address(name), ports.address(f"{name}.metrics")
    config = layout.configs / f"{name}.yaml"
    shared = {
        "dsn": stores.dsn,
        "redis_url": stores.redis_url,
        "etcd_endpoints": list(stores.etcd_endpoints),
    }
    own = {"listen": listen, "metrics_listen": metrics, **settings}
    _write(config, shared | {name: own})
    return Service(
        argv=_command(name, config),
        folder=layout.data,
        address=listen,
        metrics=metrics,
        ready_within_s=COMPILED_WITHIN_S,
    )


def agent(layout: Layout, ports: PortBook, cluster: Cluster, *, dispatch: str) -> Service:
    """The agent of one cluster; writes its settings."""
    name = agent_name(cluster)
    data = layout.agents / cluster.name
    data.mkdir(mode=0o700, exist_ok=True)
    metrics = ports.address(name)
    settings = {
        "cluster": cluster.name,
        "backend": cluster.backend,
        "data_dir": str(data),
        "dispatch": dispatch,
        "metrics_listen": metrics,
        **dict(_backend_settings(layout, cluster)),
    }
    config = layout.configs / f"{name}.yaml"
    _write(config, {"agent": settings | cluster.settings})
    return Service(argv=_command("agent", config), folder=data, address="", metrics=metrics)


def agent_name(cluster: Cluster) -> str:
    """The name of a cluster's agent among the processes."""
    return f"agent-{cluster.name}"


def _backend_settings(layout: Layout, cluster: Cluster) -> Iterator[tuple[str, Any]]:
    if cluster.backend == LOCAL:
        # A person's own machine is busy with other things, and is to take jobs all the same.
        yield "measure_load", False
    if isinstance(cluster.cluster, Path):
        yield "cluster_file", str(cluster.cluster)
    elif cluster.cluster is not None:
        described = layout.configs / f"cluster-{cluster.name}.yaml"
        _write(described, cluster.cluster)
        yield "cluster_file", str(described)


def _command(service: str, config: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", f"atoll.{service}", "--config", str(config))


def _join_secret(layout: Layout) -> str:
    """The same for as long as the data are kept: what was rented before has to be known."""
    if not layout.join_secret.exists():
        private_file(layout.join_secret, SystemIds().token(32), None)
    return layout.join_secret.read_text()


def _write(path: Path, settings: Mapping[str, Any]) -> None:
    private_file(path, yaml.safe_dump(dict(settings), sort_keys=False), None)
